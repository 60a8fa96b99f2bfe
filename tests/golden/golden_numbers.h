// Numbers for golden cases: weights and inputs by seed or as given, and whether two programs agree on them.
#pragma once

#include <string>
#include <vector>

#include "golden_case.h"
#include "lissome/program.h"

namespace lissome {

// Fills the weights of a parsed program in place.
void fill_weights(Program& program, const GoldenCase& golden);

// Sizes for the named dimensions: a few rounds, the smallest and sizes of one among them.
std::vector<DimensionBindings> choose_bindings(const Program& program);
std::vector<c10::IValue> make_inputs(const Program& program, const GoldenCase& golden,
                                     const DimensionBindings& bindings);

// Interprets both, outputs and state writes. Empty when they agree: floating point within 1e-5 of the largest element
// (f16 and bf16 1e-2), integers and non-finite elements exactly.
std::string find_disagreement(const Program& before, const Program& after, const std::vector<c10::IValue>& inputs);

}  // namespace lissome

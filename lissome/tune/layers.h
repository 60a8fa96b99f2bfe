// Time and memory by module and source line, before and after a search.
#pragma once

#include <vector>

#include "lissome/tune/variant.h"

namespace lissome {

// Medians over several runs, summed by module and source line, in the order of the original.
std::vector<LayerRecord> compare_layers(Variant& original, Variant& best, const Bench& bench,
                                        const std::function<bool()>& out_of_time);
// Bytes of intermediate values that are alive after each node of the program, on the bench inputs.
Series trace_memory(const std::string& name, const Program& program, const Bench& bench);

}  // namespace lissome

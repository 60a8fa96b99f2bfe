// The programs of a plan's reference steps, read and judged. A plan may come from a stranger: its programs pass the
// gate, and what they write and which memory they share follows from their nodes, never from what the plan says of
// itself.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lissome/program.h"
#include "lissome/runtime.h"

namespace lissome {

struct JudgedSteps {
  std::vector<std::optional<Program>> programs;  // by step; nothing for native steps
  // Some program writes into memory that it did not make: steps get copies of what may be the caller's.
  bool copies_inputs = false;
  std::vector<bool> callers;  // by value: may lie in the caller's memory
};

// `weights` are the plan's arrays by name. Throws invalid_input for a program that does not fit its step, a weight that
// the plan lacks, a write into a constant; unsupported for an op that the gate refuses.
JudgedSteps judge_steps(const Plan& plan, const std::vector<std::pair<std::string, at::Tensor>>& weights);

// Throws invalid_input unless `value` is of the kind, and as far as they are fixed of the dtype and sizes, that the
// plan says of it.
void check_held(const PlanValue& planned, const c10::IValue& value);

}  // namespace lissome

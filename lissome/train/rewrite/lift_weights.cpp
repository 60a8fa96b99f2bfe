// See lift_weights.h.
#include "lissome/train/rewrite/lift_weights.h"

#include <algorithm>

namespace lissome {

Lifted lift_weights(const Program& program) {
  Lifted lifted{program, {}, {}};
  Program& to = lifted.program;
  const auto is_written = [&](const Weight& weight) {
    return std::any_of(program.writes.begin(), program.writes.end(),
                       [&](const StateWrite& write) { return write.target == weight.value; });
  };
  to.weights.clear();
  for (const Weight& weight : program.weights) {
    const bool trains = weight.role == WeightRole::parameter && weight.tensor.is_floating_point();
    if (!trains && !is_written(weight)) {
      to.weights.push_back(weight);
      continue;
    }
    to.inputs.push_back({weight.value, "weight." + weight.name});
    lifted.weights.push_back(weight.tensor);
  }
  for (const StateWrite& write : program.writes) {
    const Weight* target = program.find_weight(write.target);
    LISSOME_CHECK(target != nullptr, "a program for training writes to an input");
    to.outputs.push_back({write.value, "state." + target->name});
    lifted.written.push_back(target->tensor);
  }
  to.writes.clear();
  to.call_tree = {};
  verify_program(to, Stage::imported);
  return lifted;
}

}  // namespace lissome

// Runs a step and measures what each of its nodes takes.
#pragma once

#include <cstdint>
#include <vector>

#include "lissome/train/budget/facts/step_source.h"

namespace lissome {

// Over some runs on the same inputs.
struct NodeCosts {
  std::vector<double> seconds;  // by node: the median
  std::vector<int64_t> rises;   // by node: the most bytes by which libtorch's memory rose while the node ran
  double moving = 0;            // seconds of moving values to a file and back, the median
};

// `inputs` of the program, weights and state included. State of the step's session is written as by any run. Throws the
// errors of a session for these inputs.
NodeCosts measure_nodes(const StepSource& source, const std::vector<at::Tensor>& inputs);

}  // namespace lissome

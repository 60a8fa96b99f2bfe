// A training step whose cost is asked for: a program and the plan that was lowered from it.
#pragma once

#include <string>

#include "lissome/program.h"
#include "lissome/runtime.h"

namespace lissome {

// A step that can be lowered: weights and state are inputs (lift_weights), and passes have run. Program and plan are
// borrowed.
struct StepSource {
  const Program* program = nullptr;
  // Lowered from this program in this process, so that its positions of nodes and values hold. Steps may have been
  // added since (repeat_copies), but no node may have been added to the program.
  const Plan* plan = nullptr;
  int threads = 0;
  std::string offload_folder;  // for a plan that keeps values in a file
};

}  // namespace lissome

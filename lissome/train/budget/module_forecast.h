// A training schedule by module: the bytes that each module keeps for the backward pass and those that it recomputes.
#pragma once

#include <string>
#include <vector>

#include "lissome/program.h"
#include "lissome/train/budget/step_model.h"

namespace lissome {

struct ModuleForecast {
  std::string module;            // "blocks.3"; "(others)" for values outside of modules
  int64_t kept = 0;              // bytes of forward values that stay until the backward pass
  int64_t recomputed = 0;        // bytes of forward values that are recomputed
  double recompute_seconds = 0;  // of recomputation
};

// One row for each module of a list and one for each other outermost module, in the order in which they run.
std::vector<ModuleForecast> describe_modules(const Program& program, const StepModel& model, const RunOrder& schedule);

}  // namespace lissome

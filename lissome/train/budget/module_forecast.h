// A training schedule in the user's words: what each module keeps for the backward pass and what it makes again.
#pragma once

#include <string>
#include <vector>

#include "lissome/program.h"
#include "lissome/train/budget/step_model.h"

namespace lissome {

struct ModuleForecast {
  std::string module;        // "blocks.3"; "(others)" for what is in none
  int64_t kept = 0;          // bytes of forward values that stay until the backward pass
  int64_t again = 0;         // bytes of those that are made again
  double again_seconds = 0;  // that this takes
};

// In the order in which the modules run. Modules in a list are one row each, others go by the first part of their path.
std::vector<ModuleForecast> describe_modules(const Program& program, const StepModel& model, const RunOrder& schedule);

}  // namespace lissome

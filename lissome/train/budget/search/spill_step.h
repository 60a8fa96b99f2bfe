// Planned steps whose idle activations are spilled, with the predicted time of the moves.
#pragma once

#include <optional>
#include <string>

#include "lissome/train/budget/search/planned_step.h"
#include "lissome/train/budget/search/planning_task.h"
#include "lissome/train/budget/transfer_rate.h"

namespace lissome {

// Rates of this machine, measured when they are first asked for: most searches need none.
class SpillRates {
 public:
  explicit SpillRates(std::string folder) : folder_name_(std::move(folder)) {}

  double copy();                // bytes a second, see measure_copy_rate()
  const FolderRates& folder();  // throws the errors of measure_folder()

 private:
  std::string folder_name_;
  std::optional<double> copy_;
  std::optional<FolderRates> folder_;
};

// The step with idle activations in bf16, or in the budget's folder, until it fits the budget. Nothing where none can
// be spilled. `exact` spills nothing yet; the budget has a limit.
std::optional<PlannedStep> spill_to_bf16(const PlanningTask& task, PlannedStep exact, SpillRates& rates);
std::optional<PlannedStep> spill_to_file(const PlanningTask& task, PlannedStep exact, SpillRates& rates);

}  // namespace lissome

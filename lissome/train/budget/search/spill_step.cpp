// See spill_step.h.
#include "lissome/train/budget/search/spill_step.h"

#include "lissome/train/remat/store_in_file.h"
#include "lissome/train/remat/store_lossy.h"

namespace lissome {

double SpillRates::copy() {
  if (!copy_) copy_ = measure_copy_rate();
  return *copy_;
}

const FolderRates& SpillRates::folder() {
  if (!folder_) folder_ = measure_folder(folder_name_);
  return *folder_;
}

std::optional<PlannedStep> spill_to_bf16(const PlanningTask& task, PlannedStep exact, SpillRates& rates) {
  const int64_t wanted = task.budget.memory - exact.memory.held;
  exact.lossy = store_in_bf16(exact.plan, task.sizes, task.source.threads, wanted);
  if (exact.lossy.values == 0) return std::nullopt;
  // Each conversion, to bf16 and back, moves 6 bytes for 4 bytes of f32.
  exact.seconds += 3 * static_cast<double>(exact.lossy.bytes) / rates.copy();
  exact.method += ", bf16 activations";
  exact.memory = predict_memory(task.facts, exact.schedule, exact.plan, task.sizes, task.source.threads);
  return exact;
}

std::optional<PlannedStep> spill_to_file(const PlanningTask& task, PlannedStep exact, SpillRates& rates) {
  const int64_t wanted = task.budget.memory - exact.memory.held;
  exact.offloaded = store_in_file(exact.plan, task.sizes, task.source.threads, wanted);
  if (exact.offloaded.values == 0) return std::nullopt;
  exact.seconds = rates.folder().predict(exact.seconds, 2 * exact.offloaded.bytes);
  exact.method += ", offloaded activations";
  exact.memory = predict_memory(task.facts, exact.schedule, exact.plan, task.sizes, task.source.threads);
  return exact;
}

}  // namespace lissome

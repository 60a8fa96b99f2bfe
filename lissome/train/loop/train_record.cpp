#include "lissome/train/loop/train_record.h"

namespace lissome {
namespace {

// Adds the numbers that are averaged. A point has the position of its last step.
constexpr double TrainStepRecord::* kMeans[] = {
    &TrainStepRecord::loss,         &TrainStepRecord::learning_rate,     &TrainStepRecord::gradient_norm,
    &TrainStepRecord::seconds_data, &TrainStepRecord::seconds_gradients, &TrainStepRecord::seconds_update,
    &TrainStepRecord::memory};

TrainStepRecord join_steps(const TrainStepRecord& first, const TrainStepRecord& last, double first_share) {
  TrainStepRecord joined = last;
  joined.skipped = first.skipped || last.skipped;
  for (const auto number : kMeans) joined.*number = first_share * (first.*number) + (1 - first_share) * (last.*number);
  return joined;
}

}  // namespace

void add_step(StepHistory& history, const TrainStepRecord& step) {
  const double before = static_cast<double>(history.summed);
  history.sum = history.summed == 0 ? step : join_steps(history.sum, step, before / (before + 1));
  if (++history.summed < history.stride) return;
  history.points.push_back(history.sum);
  history.summed = 0;
  if (history.points.size() < kMostHistoryPoints) return;
  for (size_t i = 0; 2 * i + 1 < history.points.size(); ++i)
    history.points[i] = join_steps(history.points[2 * i], history.points[2 * i + 1], 0.5);
  history.points.resize(kMostHistoryPoints / 2);
  history.stride *= 2;
}

}  // namespace lissome

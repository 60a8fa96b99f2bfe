// See epoch_judge.h.
#include "lissome/train/loop/epoch_judge.h"

#include "lissome/train/loop/validation.h"

namespace lissome {
namespace {

std::vector<at::Tensor> list_without_names(const NamedTensors& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

}  // namespace

EpochJudge::EpochJudge(const Learner& learner, const Dataset* validation, const TrainOptions& options,
                       const WorkControl& control)
    : learner_(learner),
      validation_(validation),
      options_(options),
      control_(control),
      results_(list_without_names(learner.tensors()), options.early_stop, options.average_decay) {}

// Validates the averages of weights if there are any. Returns false if it was interrupted.
bool EpochJudge::validate_epoch(EpochRecord& record, int64_t at_once) {
  if (validation_ == nullptr) return true;
  const TrainingModel& model = learner_.model();
  results_.swap_averages();
  const auto result = validate(model.judged, *validation_, at_once, model.least_judged, options_.metrics, control_);
  if (result) {
    record.validation_loss = result->loss;
    record.validation_metrics = result->metrics;
  }
  learner_.weights().release();
  results_.swap_averages();
  return result || !control_.stopped();
}

EpochVerdict EpochJudge::judge(EpochRecord& record, Schedule& schedule, int64_t at_once) {
  if (!validate_epoch(record, at_once)) return EpochVerdict::interrupted;
  const double metric = record.validation_loss.value_or(record.loss);
  schedule.observe(metric);
  return results_.observe(metric) ? EpochVerdict::stop_early : EpochVerdict::go_on;
}

}  // namespace lissome

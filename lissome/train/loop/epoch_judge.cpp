// See epoch_judge.h.
#include "lissome/train/loop/epoch_judge.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include "lissome/distributed.h"
#include "lissome/train/loop/validation.h"

namespace lissome {
namespace {

std::vector<at::Tensor> list_without_names(const NamedTensors& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

// Every rank validates, and all go by what rank 0 found: their processors may round differently. Returns false if a
// rank was interrupted.
bool share_validation(Group& group, EpochRecord& record, bool done) {
  const std::string what = "the validation of epoch " + std::to_string(record.epoch);
  const at::Tensor interrupted = at::tensor({done ? 0.0 : 1.0}, at::kDouble);
  group.sum(interrupted, what);
  if (interrupted.item().toDouble() > 0) return false;
  std::vector<double*> numbers;
  if (record.validation_loss) numbers.push_back(&*record.validation_loss);
  for (auto& [name, metric] : record.validation_metrics) numbers.push_back(&metric);
  at::Tensor shared = at::empty({static_cast<int64_t>(numbers.size())}, at::kDouble);
  auto* data = shared.mutable_data_ptr<double>();
  for (size_t i = 0; i < numbers.size(); ++i) data[i] = *numbers[i];
  group.share(shared, what);
  for (size_t i = 0; i < numbers.size(); ++i) *numbers[i] = data[i];
  return true;
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
  const auto result = validate(model.judged, *validation_, at_once, model.least_judged, options_, control_);
  if (result) {
    record.validation_loss = result->loss;
    record.validation_metrics = result->metrics;
  }
  learner_.weights().release();
  results_.swap_averages();
  return result || !control_.stopped();
}

EpochVerdict EpochJudge::judge(EpochRecord& record, Schedule& schedule, int64_t at_once) {
  bool done = validate_epoch(record, at_once);
  if (options_.group != nullptr) done = share_validation(*options_.group, record, done);
  if (!done) return EpochVerdict::interrupted;
  const double metric = record.validation_loss.value_or(record.loss);
  schedule.observe(metric);
  return results_.observe(metric) ? EpochVerdict::stop_early : EpochVerdict::go_on;
}

}  // namespace lissome

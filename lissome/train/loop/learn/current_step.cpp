// See current_step.h.
#include "lissome/train/loop/learn/current_step.h"

#include <c10/util/Exception.h>

#include "lissome/distributed.h"
#include "lissome/train/budget/choose_parts.h"
#include "lissome/train/budget/compare_step_times.h"
#include "lissome/train/step/make_batch_step.h"

namespace lissome {
namespace {

// Samples that run at once on each rank of a group, whose batch is spread over them.
int64_t count_at_once(const TrainingModel& model, const Group* group) {
  if (group == nullptr || model.fixed) return model.batch;
  return std::max((model.batch + group->ranks() - 1) / group->ranks(), model.least);
}

}  // namespace

CurrentStep::CurrentStep(const TrainingModel& model, const Dataset& data, const TrainOptions& options,
                         OffloadedWeights& weights)
    : model_(model),
      data_(data),
      options_(options),
      weights_(weights),
      precision_(options.precision.value()),
      step_(make(precision_)) {}

std::unique_ptr<BatchStep> CurrentStep::make(Dtype precision) {
  TrainOptions options = options_;
  options.precision = precision;
  auto step = std::make_unique<BatchStep>(make_batch_step(model_.model, model_.with_loss, data_, options,
                                                          count_at_once(model_, options.group), model_.examples));
  if (options_.callbacks.on_passes) options_.callbacks.on_passes(step->step().passes());
  if (step->step().streams_weights())
    weights_.move(find_offloadable_weights(model_.with_loss, options_.update_in_backward), options_.offload);
  return step;
}

TrainingBytes CurrentStep::count_bytes() const {
  const WeightPlace place = step_->step().streams_weights() ? WeightPlace::file : WeightPlace::memory;
  return count_training_bytes(model_.with_loss, options_, place);
}

std::vector<std::string> CurrentStep::list_new_notes() {
  const std::vector<std::string>& notes = step_->notes();
  if (reported_ == notes.size()) return {};
  std::vector<std::string> news(notes.begin() + static_cast<std::ptrdiff_t>(reported_), notes.end());
  reported_ = notes.size();
  return news;
}

void CurrentStep::look_for_faster(const std::vector<at::Tensor>& batch, NoticeLog& notices) {
  const bool are_parts_open = options_.batch == 0 && step_->may_split();
  if (!are_parts_open && !is_precision_open_) {
    notices.add(
        "no setting of a step is automatic (--batch auto, --precision auto), so nothing is tried to make it faster");
    return;
  }
  const auto report_no_memory = [&](const std::string& why) {
    notices.add("there is not enough memory to try another step beside this one: " + why);
  };
  try {
    if (are_parts_open) notices.add(choose_parts(*step_, batch));
    if (is_precision_open_) notices.add(choose_other_precision(batch));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::over_budget) throw;
    report_no_memory(error.message());
  } catch (const c10::OutOfMemoryError& error) {
    report_no_memory(error.what_without_backtrace());
  }
}

std::string CurrentStep::choose_other_precision(const std::vector<at::Tensor>& batch) {
  const Dtype other = precision_ == Dtype::f32 ? Dtype::bf16 : Dtype::f32;
  std::unique_ptr<BatchStep> candidate = make(other);
  if (candidate->may_split()) candidate->set_at_once(step_->at_once());
  const StepComparison compared =
      compare_step_times([&] { step_->rehearse(batch); }, [&] { candidate->rehearse(batch); });
  const std::string now_name(dtype_name(precision_)), other_name(dtype_name(other)),
      measured = ": a step in " + other_name + " takes " + compared.factor + " as in " + now_name;
  if (!compared.pays) return "the precision stays " + now_name + measured;
  step_ = std::move(candidate);
  reported_ = 0;
  precision_ = other;
  return "the precision is " + other_name + " from now on" + measured;
}

}  // namespace lissome

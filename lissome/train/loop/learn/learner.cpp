// See learner.h.
#include "lissome/train/loop/learn/learner.h"

#include <cmath>
#include <unordered_set>

#include "lissome/train/optim/nonfinite.h"
#include "lissome/train/rewrite/freeze.h"

namespace lissome {
namespace {

NamedTensors list_tensors(const Program& program) {
  NamedTensors tensors;
  std::unordered_set<const void*> seen;
  for (const Weight& weight : program.weights) {
    const bool trained = weight.role != WeightRole::constant && weight.tensor.numel() > 0;
    if (trained && seen.insert(weight.tensor.const_data_ptr()).second) tensors.emplace_back(weight.name, weight.tensor);
  }
  return tensors;
}

std::vector<Parameter> list_parameters(const TrainingStep& step) {
  std::vector<Parameter> parameters;
  for (const std::string& name : step.names())
    parameters.push_back({name, step.program().find_weight(name)->tensor, {}});
  return parameters;
}

}  // namespace

Learner::Learner(TrainingModel model, const Dataset& data, const TrainOptions& options)
    : options_(options),
      model_(std::move(model)),
      step_(model_, data, options, weights_),
      names_(step_.batch_step().step().names()),
      tensors_(list_tensors(step_.batch_step().step().program())),
      optimizer_(list_parameters(step_.batch_step().step()), options.optimizer, list_training_groups(options.groups),
                 options.offload) {
  if (options.update_in_backward) backward_update_.emplace(optimizer_, names_, options.gradient_hooks);
}

std::optional<double> Learner::compute_gradients(const std::vector<at::Tensor>& batch, const StepOptions& rates,
                                                 const WorkControl& control) {
  if (!backward_update_) return run_until_stopped(batch, control);
  backward_update_->begin(rates);
  const GradientTaker taker = [&](size_t index, const at::Tensor& gradient) {
    backward_update_->take(index, gradient);
  };
  return step_.batch_step().run(batch, &taker);
}

std::optional<double> Learner::run_until_stopped(const std::vector<at::Tensor>& batch, const WorkControl& control) {
  BatchStep& step = step_.batch_step();
  step.step().session().stop_runs(control.should_stop);
  std::optional<double> loss;
  try {
    loss = step.run(batch);
  } catch (const RunInterrupted&) {
  }
  step.step().session().stop_runs({});
  return loss;
}

StepResult Learner::update_weights(StepOptions rates, const std::string& good_state) {
  BatchStep& step = step_.batch_step();
  StepResult result;
  if (backward_update_) {
    result = backward_update_->finish(good_state);
  } else {
    std::vector<at::Tensor> gradients = step.gradients();
    if (options_.gradient_hooks != nullptr) options_.gradient_hooks->apply(names_, gradients);
    rates.clip_norm = options_.clip_norm;
    rates.loss_scale = step.loss_scale();
    result = optimizer_.step(gradients, rates);
  }
  step.note_update(result.skipped);
  return result;
}

void Learner::check_loss(double loss, int64_t step, const std::string& good_state) const {
  if (std::isfinite(loss)) return;
  BatchStep& batch_step = step_.batch_step();
  throw_error(ErrorKind::invalid_input, "the loss became ",
              std::isnan(loss) ? "NaN"
              : loss > 0       ? "inf"
                               : "-inf",
              " at step ", step, ". The first node that computes NaN or infinity: ",
              find_nonfinite_node(batch_step.step().program(), batch_step.last_inputs()),
              ". Lower --lr, or check the samples of that batch.\n", good_state);
}

void Learner::check_weights(int64_t step, const std::string& good_state) const {
  for (const std::string& name : names_) {
    if (is_all_finite(step_.batch_step().step().program().find_weight(name)->tensor)) continue;
    throw_error(ErrorKind::invalid_input, "after step ", step, " the weight ", quote(name),
                " holds NaN or infinity, so nothing is written. Lower --lr, or clip gradients (--clip).\n", good_state);
  }
}

}  // namespace lissome

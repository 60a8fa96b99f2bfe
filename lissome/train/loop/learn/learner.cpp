// See learner.h.
#include "lissome/train/loop/learn/learner.h"

#include <ATen/Context.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <unordered_set>

#include "lissome/train/loop/learn/early_gradients.h"
#include "lissome/train/loop/learn/shared_gradients.h"
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

// What a step writes: the tensors that no optimizer changes.
std::vector<at::Tensor> list_state(const NamedTensors& tensors, const std::vector<Parameter>& parameters) {
  std::vector<at::Tensor> state;
  for (const auto& [name, tensor] : tensors) {
    const bool trained = std::any_of(parameters.begin(), parameters.end(),
                                     [&](const Parameter& parameter) { return parameter.weight.is_alias_of(tensor); });
    if (!trained) state.push_back(tensor);
  }
  return state;
}

// The order of rank 0: on another processor gradients may be complete in another one.
std::vector<size_t> share_order(Group& group, const TrainingStep& step) {
  std::vector<size_t> order = step.list_completion();
  const at::Tensor shared = at::tensor(std::vector<int64_t>(order.begin(), order.end()), at::kLong);
  group.share(shared, "the order of gradients");
  std::vector<bool> seen(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<size_t>(shared.const_data_ptr<int64_t>()[i]);
    if (order[i] >= seen.size() || seen[order[i]])
      throw_error(ErrorKind::invalid_input, "rank 0 does not order ", order.size(), " gradients: it trains otherwise");
    seen[order[i]] = true;
  }
  return order;
}

std::unique_ptr<GradientExchange> make_exchange(const TrainOptions& options, const TrainingStep& step,
                                                const NamedTensors& tensors) {
  const std::vector<Parameter> parameters = list_parameters(step);
  NamedTensors trained;
  for (const Parameter& parameter : parameters) trained.emplace_back(parameter.name, parameter.weight);
  std::vector<at::Tensor> state = list_state(tensors, parameters);
  if (sums_early(options))
    return std::make_unique<EarlyGradients>(*options.group, std::get<DenseGradients>(options.compression).dtype,
                                            options.bucket, trained, share_order(*options.group, step),
                                            std::move(state));
  auto compressor =
      make_compressor(options.compression, trained, {options.optimizer, options.groups, options.clip_norm});
  return std::make_unique<SharedGradients>(*options.group, options.compression, std::move(compressor), trained,
                                           std::move(state));
}

// Ranks draw different random numbers, which a resumed training draws again: they depend on nothing before the step.
void seed_step(uint64_t seed, int64_t step, int rank) {
  at::manual_seed(seed + static_cast<uint64_t>(step) * 0x9E3779B97F4A7C15 +
                  static_cast<uint64_t>(rank) * 0xD1B54A32D192ED03);
}

}  // namespace

Learner::Learner(TrainingModel model, const Dataset& data, const TrainOptions& options)
    : data_(data),
      options_(options),
      model_(std::move(model)),
      step_(model_, data, options, weights_),
      names_(step_.batch_step().step().names()),
      tensors_(list_tensors(step_.batch_step().step().program())),
      optimizer_(list_parameters(step_.batch_step().step()), options.optimizer, list_training_groups(options.groups),
                 options.offload) {
  if (options.update_in_backward) backward_update_.emplace(optimizer_, names_, options.gradient_hooks);
  if (options.group != nullptr) exchange_ = make_exchange(options, step_.batch_step().step(), tensors_);
  if (synchronizes_batch_norm(options)) norms_.emplace(*options.group);
}

std::optional<UpdatePart> Learner::compute_gradients(const std::vector<at::Tensor>& batch, const Moment& moment,
                                                     const WorkControl& control) {
  if (exchange_) return compute_shared(batch, moment, control);
  UpdatePart part{.samples = batch.front().size(0)};
  if (backward_update_) {
    backward_update_->begin(moment.rates);
    const GradientTaker taker = [&](size_t index, const at::Tensor& gradient) {
      backward_update_->take(index, gradient);
    };
    part.loss = step_.batch_step().run(batch, &taker);
    part.weight = step_.batch_step().weigh(batch);
    return part;
  }
  const std::optional<double> loss = run_until_stopped(batch, control);
  if (!loss) return std::nullopt;
  part.loss = *loss;
  part.weight = step_.batch_step().weigh(batch);
  return part;
}

// Runs samples whose gradients nobody reads, beside the samples of other ranks.
void Learner::run_uncounted(const Moment& moment) {
  seed_step(options_.seed, moment.step, options_.group->rank());
  const int64_t samples = std::min(model_.examples, step_.batch_step().at_once());
  step_.batch_step().run(take_inputs(data_, 0, samples, model_.with_loss.inputs.size()));
}

UpdatePart Learner::compute_shared(const std::vector<at::Tensor>& batch, const Moment& moment,
                                   const WorkControl& control) {
  BatchStep& batch_step = step_.batch_step();
  UpdatePart part;
  if (!batch.empty()) part.weight = batch_step.weigh(batch), part.samples = batch.front().size(0);
  exchange_->begin(part, moment.step, moment.rates.momentum);
  const GradientTaker taker = [&](size_t index, const at::Tensor& gradient) { exchange_->take(index, gradient); };
  if (norms_) norms_->begin(part.weight, moment.step);
  const RankLinkScope linked(norms_ ? &*norms_ : nullptr);
  if (batch.empty() && options_.batches.uneven == UnevenBatch::pad) run_uncounted(moment);
  if (!batch.empty()) {
    seed_step(options_.seed, moment.step, options_.group->rank());
    part.loss = batch_step.run(batch, sums_early(options_) ? &taker : nullptr);
  }
  part.interrupted = control.stopped(), part.save_due = moment.save_due;
  const UpdatePart all = exchange_->finish(batch.empty() ? std::vector<at::Tensor>() : batch_step.gradients(), part);
  exchange_->share_state(moment.step);
  return all;
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
    std::vector<at::Tensor> gradients = exchange_ ? exchange_->gradients() : step.gradients();
    if (options_.gradient_hooks != nullptr) options_.gradient_hooks->apply(names_, gradients);
    rates.clip_norm = options_.clip_norm;
    rates.loss_scale = step.loss_scale();
    if (exchange_) exchange_->adjust(rates);
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

std::string Learner::find_nonfinite_gradient() const {
  if (backward_update_) return {};
  const std::vector<at::Tensor>& gradients = exchange_ ? exchange_->gradients() : step_.batch_step().gradients();
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].defined() && !gradients[i].is_sparse() && !is_all_finite(gradients[i])) return names_[i];
  }
  return {};
}

}  // namespace lissome

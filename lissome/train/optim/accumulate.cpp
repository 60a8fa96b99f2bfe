// See accumulate.h.
#include "lissome/train/optim/accumulate.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lissome/differentiate.h"
#include "lissome/train/step/precision.h"

namespace lissome {
namespace {

Program prepare_program(const Program& program, Dtype precision) {
  if (precision == Dtype::f32) return program;
  const Program cast = apply_autocast(program, precision);
  return precision == Dtype::f16 ? attach_loss_scale(cast) : cast;
}

std::vector<at::Tensor> add_scale(std::vector<at::Tensor> inputs, const std::optional<LossScaler>& scaler) {
  if (scaler) inputs.push_back(at::scalar_tensor(scaler->scale(), at::kFloat));
  return inputs;
}

// Adds the size of the loss scale to the budget of a step.
TrainingStepOptions complete(TrainingStepOptions options, const std::optional<LossScaler>& scaler) {
  if (options.budget && scaler) options.budget->sizes.push_back({});
  return options;
}

// Restores random numbers unless the run that drew them is kept.
class RandomKeeper {
 public:
  RandomKeeper() : generator_(at::globalContext().defaultGenerator(at::kCPU)) {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    before_ = generator_.get_state();
  }
  void restore() {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    generator_.set_state(before_);
  }

 private:
  at::Generator generator_;
  at::Tensor before_;
};

// The batches that a program takes: the range of the first size of its first input.
std::pair<int64_t, int64_t> find_batch_range(const Program& program) {
  const ValueType& type = program.value(program.inputs.at(0).value).type;
  std::pair<int64_t, int64_t> range = {1, std::numeric_limits<int64_t>::max()};
  if (type.sizes.empty() || type.sizes[0].operation() != Dimension::Operation::name) return range;
  for (const NamedDimension& dimension : program.dimensions) {
    if (dimension.name == type.sizes[0].name()) range = {std::max<int64_t>(dimension.minimum, 1), dimension.maximum};
  }
  return range;
}

std::vector<at::Tensor> cut(const std::vector<at::Tensor>& batch, int64_t first, int64_t count) {
  std::vector<at::Tensor> part;
  for (const at::Tensor& tensor : batch) part.push_back(tensor.narrow(0, first, count));
  return part;
}

// Repeats the samples of a batch up to `count`.
std::vector<at::Tensor> grow(const std::vector<at::Tensor>& batch, int64_t count) {
  std::vector<at::Tensor> grown;
  const at::Tensor samples = at::arange(count, at::kLong).remainder(batch.front().size(0));
  for (const at::Tensor& tensor : batch) grown.push_back(tensor.index_select(0, samples));
  return grown;
}

}  // namespace

double weigh_labels(const LossOptions& loss, const at::Tensor& labels, int64_t samples) {
  if (loss.kind != LossKind::cross_entropy || labels.is_floating_point()) return static_cast<double>(samples);
  const at::Tensor counted = labels.ne(loss.ignored_label);
  if (loss.class_weights.empty()) return counted.sum().item().toDouble();
  const at::Tensor weights = at::tensor(loss.class_weights, at::kDouble);
  return weights.index_select(0, labels.masked_select(counted)).sum().item().toDouble();
}

BatchStep::BatchStep(const Program& program, const std::vector<at::Tensor>& examples, const BatchStepOptions& options)
    : program_(program),
      loss_(options.loss),
      scaler_(options.precision == Dtype::f16 ? std::optional<LossScaler>(std::in_place) : std::nullopt),
      step_(prepare_program(program, options.precision), add_scale(examples, scaler_), complete(options.step, scaler_)),
      state_(program),
      range_(find_batch_range(program)),
      fixed_(options.fixed),
      gives_gradients_(options.step.gradients_leave != GradientsLeave::after_step),
      synchronizes_(options.step.synchronize_batch_norm),
      shared_(options.shared),
      at_once_(options.fixed.value_or(options.at_once)),
      reserved_(at::empty({options.reserved}, at::kByte)) {
  LISSOME_CHECK(at_once_ > 0, "a part of ", at_once_, " samples");
}

std::vector<BatchStep::Part> BatchStep::split(int64_t count) const {
  const int64_t parts = std::min((count + at_once_ - 1) / at_once_, std::max<int64_t>(count / range_.first, 1));
  std::vector<Part> split;
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t begin = count * i / parts, end = count * (i + 1) / parts;
    split.push_back({begin, end - begin});
  }
  return split;
}

void BatchStep::set_at_once(int64_t samples) {
  LISSOME_CHECK(may_split() && samples >= range_.first, "parts of ", samples, " samples");
  at_once_ = samples;
}

double BatchStep::weigh(const std::vector<at::Tensor>& inputs) const {
  return weigh_labels(loss_, inputs.back(), inputs.front().size(0));
}

// Returns the loss of the part without the scale.
double BatchStep::run_part(std::vector<at::Tensor> inputs, const GradientTaker* taker) {
  last_inputs_ = add_scale(std::move(inputs), scaler_);
  return step_.run(last_inputs_, nullptr, taker).at(0).item().toDouble() / loss_scale();
}

void BatchStep::accumulate(double share) {
  const at::NoGradGuard no_gradients;
  const std::vector<at::Tensor>& news = step_.gradients();
  const bool is_first = gradients_.empty();
  gradients_.resize(news.size());
  for (size_t i = 0; i < news.size(); ++i) {
    if (!news[i].defined()) continue;
    if (is_first) {
      gradients_[i] = news[i].to(at::kFloat).mul(share);
    } else {
      gradients_[i].add_(news[i], share);
    }
  }
}

double BatchStep::run_parts(const std::vector<at::Tensor>& batch, const std::vector<Part>& parts,
                            const GradientTaker* taker) {
  gradients_.clear();
  if (parts.size() == 1) {
    const double loss = run_part(batch, taker);
    gradients_ = step_.gradients();
    return loss;
  }
  LISSOME_CHECK(!gives_gradients_, "gradients that were given away cannot be summed over ", parts.size(), " parts");
  const double all = weigh(batch);
  double loss = 0;
  for (const Part& part : parts) {
    const std::vector<at::Tensor> inputs = cut(batch, part.first, part.count);
    const double weight = weigh(inputs);
    if (weight == 0 && all > 0) continue;  // a mean over no labels is NaN and must not count
    state_.prepare();
    loss += run_part(inputs, nullptr) * (weight / all);
    state_.take(inputs);
    accumulate(weight / all);
  }
  state_.finish();
  return loss;
}

// Empty if memory does not suffice; everything is then as before.
std::optional<double> BatchStep::try_parts(const std::vector<at::Tensor>& batch, const std::vector<Part>& parts,
                                           const GradientTaker* taker) {
  RandomKeeper random;
  state_.begin();
  const auto undo = [&] {
    state_.restore();
    random.restore();
    gradients_.clear(), last_inputs_.clear();
    step_.release_memory();  // smaller parts do not need memory of this size
  };
  try {
    return run_parts(batch, parts, taker);
  } catch (const Error& error) {
    undo();
    if (error.kind() != ErrorKind::over_budget) throw;
    refusal_ = error.message();
  } catch (const RunInterrupted&) {
    undo();
    throw;
  } catch (const c10::OutOfMemoryError& error) {
    undo();
    refusal_ = error.what_without_backtrace();
  }
  return std::nullopt;
}

void BatchStep::note_parts(const std::vector<Part>& parts) {
  if (parts.size() == 1 || std::exchange(parts_noted_, true) || !state_.has_batch_norm()) return;
  notes_.push_back("batch norm normalizes by the statistics of the " + std::to_string(parts.back().count) +
                   " samples that run at once, not of all samples of an update; running statistics are written once "
                   "an update, pooled over its parts");
}

// Without consequences. Empty if memory does not suffice.
std::optional<double> BatchStep::measure_loss(const std::vector<at::Tensor>& samples) {
  const std::optional<double> loss = try_parts(samples, {{0, samples.front().size(0)}});
  state_.restore();
  gradients_.clear();
  return loss;
}

// Samples that come twice leave a mean as it is and double a sum, whatever the loss is made of.
void BatchStep::check_mean(const std::vector<at::Tensor>& batch, int64_t at_once) {
  if (loss_.kind != LossKind::output || at_once >= mean_unchecked_below_) return;
  mean_unchecked_below_ = at_once;
  constexpr int64_t kLeftOver = 4;  // what runs beside the batch has to fit as well
  const int64_t samples = std::max(range_.first, at_once / kLeftOver);
  if (2 * samples > std::min(batch.front().size(0), range_.second)) return;
  RandomKeeper random;
  const RankLinkScope alone(nullptr);
  const std::vector<at::Tensor> first = cut(batch, 0, samples);
  const std::optional<double> once = measure_loss(first), twice = measure_loss(grow(first, 2 * samples));
  const std::optional<double> again = measure_loss(first), other = measure_loss(cut(batch, samples, samples)),
                              both = measure_loss(cut(batch, 0, 2 * samples));
  random.restore();
  if (!once || !twice || !again || !other || !both) return;  // smaller parts will be tried
  mean_unchecked_below_ = 0;
  if (std::abs(*twice - 2 * *once) < std::abs(*twice - *once))
    throw_error(
        ErrorKind::invalid_input, "the loss adds its samples up: it is ", *once, " for ", samples, " samples and ",
        *twice,
        " if each comes twice.\n      Updates run in parts here, whose losses are averaged. Return the mean over "
        "the samples, or give a batch that runs at once (more memory, accumulate 1)");
  const double halves = (*once + *other) / 2;
  constexpr double kRounding = 1e-3;
  const bool random_loss = *again != *once;
  if (random_loss || state_.has_batch_norm() || std::abs(*both - halves) <= kRounding * std::abs(halves)) return;
  notes_.push_back(
      "the loss is no mean over samples: an update that runs in parts takes the mean of their losses, which "
      "is not the loss of the whole batch");
}

double BatchStep::run(const std::vector<at::Tensor>& batch, const GradientTaker* taker) {
  for (;;) {
    const std::vector<Part> parts = split(batch.front().size(0));
    if (parts.size() > 1 || shared_) check_mean(batch, parts.front().count);
    if (const std::optional<double> loss = try_parts(batch, parts, taker)) {
      note_parts(parts);
      reserved_ = at::Tensor();
      return *loss;
    }
    const int64_t largest = parts.back().count;
    if (gives_gradients_)
      throw_error(ErrorKind::over_budget, "a training step of ", largest,
                  " samples does not fit into memory: ", refusal_,
                  ".\n      Its gradients leave in the backward pass, so it cannot run in parts. Give a smaller "
                  "batch or more memory");
    if (synchronizes_)
      throw_error(
          ErrorKind::over_budget, "a training step of ", largest, " samples does not fit into memory: ", refusal_,
          ".\n      Its batch norms are computed over all ranks, so it cannot run in parts. Give a smaller batch or "
          "more memory");
    if (fixed_ || largest / 2 < range_.first)
      throw_error(ErrorKind::over_budget, "a training step of ", largest, " samples, the fewest that the model takes, ",
                  "does not fit into memory: ", refusal_, ". Give more memory");
    at_once_ = largest / 2;
    notes_.push_back(std::to_string(largest) + " samples at once do not fit into memory (" + refusal_ +
                     "); from now on " + std::to_string(at_once_) +
                     " samples run at once, and updates see as many as before");
  }
}

void BatchStep::note_update(bool skipped) {
  if (scaler_) scaler_->update(skipped);
}

bool BatchStep::try_size(const std::vector<at::Tensor>& batch, int64_t size) {
  step_.release_memory();  // frees the memory of the size before
  std::vector<at::Tensor> grown;
  try {
    grown = grow(batch, size);
  } catch (const c10::OutOfMemoryError& error) {
    refusal_ = error.what_without_backtrace();
    return false;
  }
  RandomKeeper random;
  const bool fits = try_parts(grown, {{0, size}}).has_value();
  state_.restore();
  random.restore();
  return fits;
}

double BatchStep::rehearse(const std::vector<at::Tensor>& batch, const GradientTaker* taker) {
  RandomKeeper random;
  const double loss = run(batch, taker);
  state_.restore();
  random.restore();
  return loss;
}

int64_t BatchStep::find_largest(const std::vector<at::Tensor>& batch, int64_t most) {
  if (fixed_) return *fixed_;
  most = std::min(most, range_.second);
  int64_t fitting = 0, failing = 0, size = std::min(range_.first, most);
  while (failing == 0 && fitting < most) {
    (try_size(batch, size) ? fitting : failing) = size;
    size = std::min(2 * size, most);
  }
  if (fitting == 0)
    throw_error(ErrorKind::over_budget, "a training step of ", failing, " samples, the fewest that the model takes, ",
                "does not fit into memory: ", refusal_, ". Give more memory");
  while (failing > 0 && failing - fitting > std::max<int64_t>(fitting / 16, 1)) {
    size = fitting + (failing - fitting) / 2;
    (try_size(batch, size) ? fitting : failing) = size;
  }
  gradients_.clear();
  return at_once_ = fitting;
}

}  // namespace lissome

// See check_lossy.h.
#include "lissome/train/remat/check_lossy.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <cmath>

#include "lissome/train/rewrite/freeze.h"
#include "lissome/train/step/labels.h"
#include "lissome/train/step/make_batch_step.h"

namespace lissome {
namespace {

constexpr int64_t kSteps = 3;

struct StepOutcome {
  double loss = 0;
  std::vector<at::Tensor> gradients;
};

StepOutcome rehearse_step(BatchStep& step, const std::vector<at::Tensor>& samples) {
  StepOutcome outcome;
  outcome.gradients.resize(step.step().names().size());
  const GradientTaker taker = [&](size_t index, const at::Tensor& gradient) {
    outcome.gradients[index] = gradient.clone();
  };
  outcome.loss = step.rehearse(samples, &taker);
  for (size_t i = 0; i < step.gradients().size(); ++i) {
    if (step.gradients()[i].defined()) outcome.gradients[i] = step.gradients()[i].clone();
  }
  return outcome;
}

double square_norm(const at::Tensor& tensor) {
  const double norm = at::linalg_vector_norm(tensor, 2, {}, false, at::kDouble).item<double>();
  return norm * norm;
}

// The norm of the difference, as a fraction of the norm of the exact gradients.
double compare_gradients(const StepOutcome& lossy, const StepOutcome& exact) {
  double error = 0, all = 0;
  for (size_t i = 0; i < exact.gradients.size(); ++i) {
    if (!exact.gradients[i].defined()) continue;
    error += square_norm(lossy.gradients[i].sub(exact.gradients[i]));
    all += square_norm(exact.gradients[i]);
  }
  return all > 0 ? std::sqrt(error / all) : std::sqrt(error);
}

// Options of the exact step, without a memory limit: it runs few samples.
TrainOptions make_exact(TrainOptions options) {
  options.memory = 0;
  options.recompute = KeepAll{};
  options.lossy_activations = options.update_in_backward = false;
  return options;
}

}  // namespace

LossyCheck check_lossy(const Program& model, const Dataset& data, const Dataset* validation,
                       const TrainOptions& options, double limit) {
  if (options.memory == 0 || options.batch == 0 || std::holds_alternative<KeepAll>(options.recompute))
    throw_error(ErrorKind::usage,
                "lossy activations need a memory budget to fit into: give --memory, --recompute auto and a number for ",
                "--batch");
  const int64_t batch = choose_batch(model, data, options.batches, options.batch);
  const int64_t examples = choose_examples(model, batch);
  const Program with_loss =
      freeze_parameters(attach_checked_loss(model, data, validation, options, examples), options.groups);
  BatchStep lossy = make_batch_step(model, with_loss, data, options, batch, examples);
  if (lossy.step().forecast().value().stored_lossy == 0)
    return {false, "no activations are stored in bf16, because another schedule meets the budget in less time"};
  BatchStep exact = make_batch_step(model, with_loss, data, make_exact(options), batch, examples);
  double worst = 0, loss = 0;
  for (int64_t i = 0; i < kSteps && (i + 1) * examples <= data.samples(); ++i) {
    const std::vector<at::Tensor> samples = take_inputs(data, i * examples, examples, with_loss.inputs.size());
    const StepOutcome seen = rehearse_step(lossy, samples), wanted = rehearse_step(exact, samples);
    worst = std::max(worst, compare_gradients(seen, wanted));
    loss = std::max(loss, std::abs(seen.loss - wanted.loss));
  }
  const bool allowed = worst <= limit;
  char text[300];
  std::snprintf(
      text, sizeof text,
      "activations in bf16: in steps run both ways, losses differ by at most %.2g and gradients by %.2g %% of "
      "their norm, %s the limit of %.2g %%%s",
      loss, 100 * worst, allowed ? "within" : "beyond", 100 * limit,
      allowed ? "" : ": all activations are kept exactly");
  return {allowed, text};
}

}  // namespace lissome

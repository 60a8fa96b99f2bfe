// See make_batch_step.h.
#include "lissome/train/step/make_batch_step.h"

#include "lissome/train/budget/training_bytes.h"

namespace lissome {
namespace {

BatchStepOptions make_step_options(const Program& model, const Program& with_loss, const TrainOptions& options,
                                   int64_t batch) {
  BatchStepOptions step;
  step.loss = choose_loss(options);
  step.precision = options.precision.value();
  step.step.threads = options.threads;
  step.at_once = batch;
  step.step.outputs = false;
  step.step.disabled_passes = options.disabled_passes;
  if (find_fixed_batch(model)) step.fixed = batch;
  if (options.update_in_backward) step.step.gradients_leave = GradientsLeave::for_update;
  if (sums_early(options)) step.step.gradients_leave = GradientsLeave::when_complete;
  step.shared = options.group != nullptr;
  step.step.synchronize_batch_norm = synchronizes_batch_norm(options);
  // An update inside the step allocates its states beforehand.
  if (!options.update_in_backward) {
    const TrainingBytes bytes = count_training_bytes(with_loss, options, WeightPlace::memory);
    step.reserved = bytes.states + bytes.update;
  }
  return step;
}

bool is_planned(const TrainOptions& options) {
  const bool may_fit = !std::holds_alternative<KeepAll>(options.recompute) || !options.offload.empty();
  return options.memory > 0 && options.batch != 0 && may_fit;
}

// The budget of a step on `at_once` samples of a batch: the memory that the batch, weights and states leave. Where the
// gradients of several steps are added up, they are in memory twice.
StepBudget make_budget(const Program& with_loss, const TrainOptions& options, const std::vector<at::Tensor>& examples,
                       int64_t batch, int64_t at_once, WeightPlace place) {
  StepBudget budget = open_budget(with_loss, options, place);
  const TrainingBytes beside = count_training_bytes(with_loss, options, place);
  budget.memory -= beside.total() + (at_once < batch || options.accumulate > 1 ? beside.gradients : 0);
  for (const at::Tensor& example : examples) {
    Sizes sizes = example.sizes().vec();
    sizes.at(0) = batch;
    budget.memory -= count_elements(sizes) * static_cast<int64_t>(example.element_size());
    sizes.at(0) = at_once;
    budget.sizes.push_back(std::move(sizes));
  }
  budget.beside = options.memory - budget.memory;
  if (budget.memory <= 0)
    throw_error(ErrorKind::over_budget, "weights, gradients, optimizer states and ", batch,
                " samples take more than the ", format_bytes(options.memory),
                " of memory: ", format_bytes(options.memory - budget.memory),
                place == WeightPlace::file ? ", though " : "", describe_offloaded(beside),
                ".\n      Give more memory than that; lissome budget says what fits");
  return budget;
}

}  // namespace

BatchStep make_batch_step(const Program& model, const Program& with_loss, const Dataset& data,
                          const TrainOptions& options, int64_t batch, int64_t examples) {
  const std::vector<at::Tensor> samples = take_inputs(data, 0, examples, with_loss.inputs.size());
  BatchStepOptions step = make_step_options(model, with_loss, options, batch);
  if (!is_planned(options)) return BatchStep(with_loss, samples, step);
  const std::vector<WeightPlace> places = list_weight_places(with_loss, options);
  for (;; step.at_once /= 2) {
    const bool smallest =
        step.fixed || step.at_once == 1 || options.update_in_backward || step.step.synchronize_batch_norm;
    for (const WeightPlace place : places) {
      try {
        step.step.budget = make_budget(with_loss, options, samples, batch, step.at_once, place);
        return BatchStep(with_loss, samples, step);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::over_budget || (smallest && place == places.back())) throw;
      }
    }
  }
}

std::string describe_forecast(const StepForecast& forecast, int64_t batch) {
  const double slower = forecast.plain_seconds > 0 ? 100 * (forecast.seconds / forecast.plain_seconds - 1) : 0;
  char text[200];
  std::snprintf(text, sizeof text,
                "%lld samples at once are predicted to take %s for activations and scratch (schedule: %s)",
                static_cast<long long>(batch), format_bytes(forecast.chosen.total()).c_str(), forecast.method.c_str());
  std::string description = text;
  if (forecast.recomputed_nodes > 0) {
    std::snprintf(text, sizeof text,
                  "; keeping everything would take %s, so %d nodes are recomputed, for about %.0f %% more time",
                  format_bytes(forecast.plain.total()).c_str(), forecast.recomputed_nodes, slower);
    description += text;
  }
  if (forecast.stored_lossy > 0)
    description += "; " + std::to_string(forecast.stored_lossy) + " activations are kept in bf16 for the backward pass";
  if (forecast.offloaded > 0)
    description += "; " + std::to_string(forecast.offloaded) + " activations of " +
                   format_bytes(forecast.offloaded_bytes) + " are kept in a file for the backward pass";
  return description;
}

}  // namespace lissome

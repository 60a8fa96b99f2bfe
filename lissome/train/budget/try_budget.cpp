// See try_budget.h.
#include "lissome/train/budget/try_budget.h"

#include <ATen/core/ivalue.h>

#include "lissome/train/optim/accumulate.h"
#include "lissome/train/remat/offload_weights.h"
#include "lissome/train/rewrite/freeze.h"
#include "lissome/train/step/fit_model.h"
#include "lissome/train/step/labels.h"
#include "lissome/train/step/row_order.h"

namespace lissome {
namespace {

constexpr int kSteps = 7;  // timed

// Samples repeat if the data has fewer.
std::vector<at::Tensor> repeat_inputs(Dataset data, int64_t count, size_t inputs) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < count; ++i) rows.push_back(data.rows[static_cast<size_t>(i) % data.rows.size()]);
  data.rows = std::move(rows);
  return take_inputs(data, 0, count, inputs);
}

StepBudget make_budget(const BudgetTrial& trial, const std::vector<at::Tensor>& inputs, StepBudget budget) {
  budget.memory -= trial.beside();
  if (budget.memory <= 0) {
    throw_error(ErrorKind::over_budget, "a training step does not fit into ", format_bytes(trial.memory),
                ": weights, gradients, optimizer states, a batch and rounding take ", format_bytes(trial.beside()),
                " before any activation", trial.fixed.offloaded > 0 ? ", though " : "", describe_offloaded(trial.fixed),
                ".", "\n      Give more memory than that, or take a smaller batch",
                trial.fixed.states > 0 ? " or an optimizer with fewer states (sgd)." : " or a smaller model.");
  }
  budget.beside = trial.memory - budget.memory;
  for (const at::Tensor& input : inputs) budget.sizes.push_back(input.sizes().vec());
  return budget;
}

// Most bytes of offloaded weights that are in memory between the steps of the plan.
int64_t measure_resident(BatchStep& step, const OffloadedWeights& weights) {
  int64_t most = 0;
  const StepSink look = [&](const StepTiming&) { most = std::max(most, weights.resident()); };
  step.step().run(step.last_inputs(), &look);
  return most;
}

BudgetTrial try_with_weights(const Program& program, const std::vector<at::Tensor>& examples,
                             const std::vector<at::Tensor>& inputs, const TrainOptions& options, WeightPlace place) {
  BudgetTrial trial;
  trial.memory = options.memory;
  trial.fixed = count_training_bytes(program, options, place);
  for (const at::Tensor& input : inputs) trial.batch_bytes += static_cast<int64_t>(input.nbytes());
  BatchStepOptions step_options;
  step_options.loss = options.loss;
  step_options.precision = options.precision.value();
  step_options.at_once = options.batch;
  step_options.step = {
      .threads = options.threads,
      .budget = make_budget(trial, inputs, open_budget(program, options, place)),
      .outputs = false,
      .gradients_leave = options.update_in_backward ? GradientsLeave::for_update : GradientsLeave::after_step,
      .disabled_passes = options.disabled_passes};
  OffloadedWeights weights;  // goes last: steps read them
  BatchStep step(program, examples, step_options);
  if (place == WeightPlace::file)
    weights.move(find_offloadable_weights(program, options.update_in_backward), options.offload);
  trial.predicted = *step.step().forecast();
  trial.passes = step.step().passes();
  step.run(inputs);
  trial.measured = measure_memory(step.step().session(), [&] { step.step().run(step.last_inputs()); });
  trial.weights_measured = trial.fixed.weights;
  if (place == WeightPlace::file)
    trial.weights_measured += measure_resident(step, weights) - trial.fixed.offloaded_at_once;
  std::vector<double> seconds;
  for (int i = 0; i < kSteps; ++i) {
    const Stopwatch watch;
    step.run(inputs);
    seconds.push_back(watch.seconds());
  }
  trial.seconds = summarize(seconds);
  return trial;
}

// `model` is fitted to the data (fit_model.h).
BudgetTrial try_fitted(const Program& model, const Dataset& data, const TrainOptions& options) {
  const int64_t examples = choose_examples(model, options.batch);
  const Program program =
      freeze_parameters(attach_checked_loss(model, data, nullptr, options, examples), options.groups);
  const std::vector<at::Tensor> inputs = repeat_inputs(data, options.batch, program.inputs.size()),
                                samples = repeat_inputs(data, examples, program.inputs.size());
  const std::vector<WeightPlace> places = list_weight_places(program, options);
  if (places.size() > 1) {
    try {
      return try_with_weights(program, samples, inputs, options, places.front());
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::over_budget) throw;
    }
  }
  return try_with_weights(program, samples, inputs, options, places.back());
}

}  // namespace

BudgetTrial try_budget(const Program& model, const Dataset& data, const TrainOptions& options) {
  check_offload_folder(options.offload);
  const WeightsInRowOrder weights(model);
  BudgetTrial trial;
  fit_widest(weights.program(), data, nullptr, options.batch, [&](const Program& fitted, const std::string& notice) {
    trial = try_fitted(fitted, data, options);
    trial.notice = notice;
  });
  return trial;
}

}  // namespace lissome

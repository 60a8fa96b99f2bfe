// See try_budget.h.
#include "lissome/train/try_budget.h"

#include <ATen/core/ivalue.h>

#include "lissome/train/accumulate.h"
#include "lissome/train/freeze.h"
#include "lissome/train/labels.h"

namespace lissome {
namespace {

constexpr int kSteps = 7;  // timed

// Samples come round again where the data are fewer.
std::vector<at::Tensor> repeat_inputs(Dataset data, int64_t count, size_t inputs) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < count; ++i) rows.push_back(data.rows[static_cast<size_t>(i) % data.rows.size()]);
  data.rows = std::move(rows);
  return take_inputs(data, 0, count, inputs);
}

StepBudget make_budget(const BudgetTrial& trial, const std::vector<at::Tensor>& inputs, const TrainOptions& options) {
  StepBudget budget{.recompute = options.recompute,
                    .memory = trial.memory - trial.beside(),
                    .sizes = {},
                    .lossy = options.lossy_activations,
                    .offload_folder = options.offload};
  if (budget.memory <= 0) {
    throw_error(ErrorKind::over_budget, "a budget of ", format_bytes(trial.memory),
                ": weights, gradients, the optimizer's states and a batch take ", format_bytes(trial.beside()),
                " before any activation.",
                "\n      A smaller batch, or an optimizer with fewer states (sgd) would help.");
  }
  for (const at::Tensor& input : inputs) budget.sizes.push_back(input.sizes().vec());
  return budget;
}

}  // namespace

BudgetTrial try_budget(const Program& model, const Dataset& data, const TrainOptions& options) {
  check_offload_folder(options.offload);
  const int64_t examples = choose_examples(model, options.batch);
  const Program program =
      freeze_parameters(attach_checked_loss(model, data, nullptr, options, examples), options.groups);
  const std::vector<at::Tensor> inputs = repeat_inputs(data, options.batch, program.inputs.size());
  BudgetTrial trial;
  trial.memory = options.memory;
  trial.fixed = count_training_bytes(program, options);
  for (const at::Tensor& input : inputs) trial.batch_bytes += static_cast<int64_t>(input.nbytes());
  BatchStepOptions step_options;
  step_options.loss = options.loss;
  step_options.precision = options.precision.value();
  step_options.at_once = options.batch;
  step_options.step = {.threads = options.threads,
                       .budget = make_budget(trial, inputs, options),
                       .outputs = false,
                       .give_gradients = options.update_in_backward};
  BatchStep step(program, repeat_inputs(data, examples, program.inputs.size()), step_options);
  trial.told = *step.step().forecast();
  step.run(inputs);
  trial.measured = measure_memory(step.step().session(), [&] { step.run(inputs); });
  std::vector<double> seconds;
  for (int i = 0; i < kSteps; ++i) {
    const Stopwatch watch;
    step.run(inputs);
    seconds.push_back(watch.seconds());
  }
  trial.seconds = summarize(seconds);
  return trial;
}

}  // namespace lissome

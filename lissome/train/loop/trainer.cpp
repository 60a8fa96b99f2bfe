// See trainer.h. Sets the process up for a training, runs its loop and hands the model back.
#include "lissome/train/loop/trainer.h"

#include <ATen/Context.h>
#include <c10/util/Exception.h>
#include <malloc.h>

#include "lissome/train/loop/start_training.h"
#include "lissome/train/step/row_order.h"

namespace lissome {

bool sums_early(const TrainOptions& options) {
  const bool whole = options.accumulate == 1 && options.memory == 0 && options.batch != 0;
  return options.group != nullptr && options.group->ranks() > 1 && options.bucket != 0 && whole &&
         std::holds_alternative<DenseGradients>(options.compression);
}

bool synchronizes_batch_norm(const TrainOptions& options) {
  return options.synchronize_batch_norm && options.group != nullptr && options.group->ranks() > 1;
}

namespace {

// Restores the state of libtorch's generator, which training seeds and draws from.
class KeptRandomState {
 public:
  KeptRandomState() : generator_(at::globalContext().defaultGenerator(at::kCPU)), state_(generator_.get_state()) {}
  ~KeptRandomState() { generator_.set_state(state_); }
  KeptRandomState(const KeptRandomState&) = delete;
  KeptRandomState& operator=(const KeptRandomState&) = delete;

 private:
  at::Generator generator_;
  at::Tensor state_;
};

Trained run_training(const Program& model, const Dataset& data, const Dataset* validation, const TrainOptions& options,
                     const WorkControl& control) {
  check_train_options(model, options);
  const TorchThreads threads(options.threads);
  const KeptRandomState random;
  FoundSnapshot found;
  if (!options.resume.empty()) found = find_snapshot(options.resume);
  const WeightsInRowOrder weights(model);
  const auto started = start_training(weights.program(), data, validation, options, found, control);
  TrainLoop& loop = *started->loop;
  at::manual_seed(options.seed);  // recording may have drawn random numbers
  malloc_trim(0);                 // returns to the system what recording and planning freed, several times the weights
  if (started->precision) {
    if (options.group == nullptr) loop.leave_precision_open();  // ranks keep to one precision
    loop.notices().add(started->precision->reason);
  }
  if (started->lossy) loop.notices().add(started->lossy->report);
  if (!options.resume.empty()) loop.resume(found);
  if (started->options.snapshots) loop.save_to(*started->options.snapshots);
  Trained trained;
  try {
    trained.record = loop.run();
  } catch (const c10::OutOfMemoryError& error) {
    throw_error(ErrorKind::over_budget, "training: ", error.what_without_backtrace());
  }
  weights.copy_back();
  trained.program = make_eval_form(model);
  return trained;
}

}  // namespace

Trained train(const Program& model, const Dataset& data, const Dataset* validation, const TrainOptions& options,
              const WorkControl& control) {
  try {
    return run_training(model, data, validation, options, control);
  } catch (const Error& error) {
    const bool has_scores = options.loss.kind == LossKind::bce &&
                            error.message().find("input should be between 0 and 1") != std::string::npos;
    if (!has_scores) throw;
    throw Error(error.kind(),
                error.message() +
                    ".\n      The loss bce compares probabilities; for a model that gives scores, without a "
                    "sigmoid at its end, take bce_logits");
  }
}

}  // namespace lissome

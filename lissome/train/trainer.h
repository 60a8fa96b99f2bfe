// The loop: epochs over shuffled batches, a step for each, a look at the validation data after each epoch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lissome/data.h"
#include "lissome/measure.h"
#include "lissome/program.h"
#include "lissome/train/early_stop.h"
#include "lissome/train/initialize.h"
#include "lissome/train/loss.h"
#include "lissome/train/optimizer.h"

namespace lissome {

struct TrainOptions {
  LossOptions loss;
  OptimizerOptions optimizer = AdamW{};
  std::vector<ParameterGroup> groups;
  std::optional<double> learning_rate;  // default: the optimizer's
  std::string schedule = "constant";    // see parse_schedule()
  int64_t epochs = 1;
  int64_t batch = 32;                           // a model of a fixed batch size takes that size alone
  double clip_norm = 1;                         // 0: gradients are not clipped
  std::optional<InitializeOptions> initialize;  // train from scratch; needs a model in train form
  std::optional<EarlyStopOptions> early_stop;   // of the validation loss, or of the training loss without such data
  uint64_t seed = 0;                            // of the order of samples, of dropout and of first weights
};

struct EpochRecord {
  int64_t epoch = 0;         // from 1
  double loss = 0;           // mean over its batches, as they were met
  double learning_rate = 0;  // of its last step
  double seconds = 0;
  std::optional<double> validation_loss, validation_accuracy;  // in eval form; accuracy where labels are classes
};

struct TrainRecord {
  std::vector<EpochRecord> epochs;
  int64_t steps = 0, skipped_steps = 0;  // skipped: a gradient was not finite
  std::vector<std::string> notes;        // what was done otherwise than one might expect
  bool interrupted = false, stopped_early = false;
};

struct Trained {
  Program program;  // eval form
  TrainRecord record;
};

// `data` has labels and fits the model's inputs (fit_dataset); so does `validation`, which may be null. Trains the
// tensors of `model` in place. Same seed, threads and build, same weights. Interrupted, it returns what it has. Throws
// invalid_input: labels that do not fit the loss or are out of range (naming the sample), an empty dataset, an
// eval-form model with `initialize`, a loss that became NaN (naming the step).
Trained train(const Program& model, const Dataset& data, const Dataset* validation, const TrainOptions& options,
              const WorkControl& control = {});

}  // namespace lissome

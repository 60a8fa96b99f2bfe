// The loop: epochs over shuffled batches, a step for each, a look at the validation data after each epoch; watched,
// saved in snapshots, and continued from them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lissome/data.h"
#include "lissome/measure.h"
#include "lissome/pass.h"
#include "lissome/program.h"
#include "lissome/train/budget/budget.h"
#include "lissome/train/loop/early_stop.h"
#include "lissome/train/loop/performance_monitor.h"
#include "lissome/train/loop/snapshot_folder.h"
#include "lissome/train/loop/train_record.h"
#include "lissome/train/optim/gradient_hooks.h"
#include "lissome/train/optim/initialize.h"
#include "lissome/train/optim/optimizer.h"
#include "lissome/train/step/batches.h"
#include "lissome/train/step/loss.h"
#include "lissome/train/step/loss_function.h"
#include "lissome/train/step/metric.h"

namespace lissome {

// Called from the training thread, between steps. Each may be empty.
struct TrainCallbacks {
  std::function<void(const TrainStepRecord&)> on_step;
  std::function<void(const EpochRecord&)> on_epoch;
  std::function<void(const MemoryRecord&)> on_memory;             // every `memory_every` steps, and after the first
  std::function<void(const std::string&)> on_notice;              // what lands in TrainRecord::notes, at once
  std::function<void(const std::vector<PassResult>&)> on_passes;  // what the training passes changed in a step
};

struct TrainOptions {
  LossOptions loss;
  LossFunction loss_function;  // in place of `loss`
  OptimizerOptions optimizer = AdamW{};
  std::vector<ParameterGroup> groups;
  // A folder for the optimizer's states, and with `memory` for activations and weights that wait where it takes that;
  // empty: all lies in memory.
  std::string offload;
  std::optional<double> learning_rate;  // default: the optimizer's
  std::string schedule = "constant";    // see parse_schedule()
  int64_t epochs = 1;
  std::optional<int64_t> max_steps;  // ends training earlier, and is the length of schedules
  int64_t batch = 32;                // samples that run at once; 0: as many as fit into memory
  int64_t accumulate = 1;            // batches an update, whose gradients are summed
  bool scale_learning_rate = true;   // by `accumulate`
  // bf16, f16: mixed, see apply_autocast(). None: f32 or bf16, see choose_precision().
  std::optional<Dtype> precision = Dtype::f32;
  int64_t memory = 0;               // bytes for weights, activations, gradients, states; 0: no limit
  Recompute recompute = KeepAll{};  // what may be made again to fit `memory`
  // Beside `recompute`, with `memory`: activations may wait in bf16 where that helps, unless check_lossy() finds that
  // gradients change too much.
  bool lossy_activations = false;
  std::vector<std::string> disabled_passes;  // names of training passes to leave out; see training_passes.h
  BatchOptions batches;
  // Each weight as soon as the backward pass has made its gradient, whose memory is then used again: the same bits,
  // less memory. Needs clip_norm 0 and accumulate 1, and not f16, which all look at every gradient before the first
  // update.
  bool update_in_backward = false;
  double clip_norm = 1;                           // 0: gradients are not clipped
  std::optional<InitializeOptions> initialize;    // train from scratch; needs a model in train form
  std::optional<EarlyStopOptions> early_stop;     // of the validation loss, or of the training loss without such data
  std::optional<double> average_decay;            // of a moving average of weights, which is validated and returned
  int threads = 0;                                // of steps and updates; 0: one for each core that it may use
  uint64_t seed = 0;                              // of the order of samples, of dropout and of first weights
  std::vector<TrainMetric> metrics;               // of the validation data, beside the ready ones that fit
  const GradientHooks* gradient_hooks = nullptr;  // must outlive training
  TrainCallbacks callbacks;
  MonitorOptions monitor;
  int64_t memory_every = 100;  // steps between looks at the memory; 0: none
  std::optional<SnapshotOptions> snapshots;
  std::string resume;  // a folder of snapshots to go on from; empty: from the beginning
};

struct Trained {
  Program program;  // eval form
  TrainRecord record;
};

// `data` has labels and fits the model's inputs (fit_dataset); so does `validation`, which may be null. Trains the
// tensors of `model` in place. Same seed, threads and build, same weights, whether it ran through or was resumed.
// Interrupted, it saves a snapshot and returns what it has. A snapshot that cannot be saved is a notice, not an end.
// Throws invalid_input: labels that do not fit the loss or are out of range (naming the sample), an empty dataset, an
// eval-form model with `initialize`, a loss that became NaN (naming the step, the node and the last snapshot), a
// gradient that is not finite after weights of its step were updated in the backward pass; usage: update_in_backward or
// lossy_activations with options that they do not go with; and what find_snapshot(), refuse_other_training() and
// SnapshotFolder throw.
Trained train(const Program& model, const Dataset& data, const Dataset* validation, const TrainOptions& options,
              const WorkControl& control = {});

}  // namespace lissome

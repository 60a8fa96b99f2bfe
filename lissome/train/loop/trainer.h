// The training loop: epochs over shuffled batches, a step for each batch, validation after each epoch. It is monitored,
// saved in snapshots and can be continued from them.
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
#include "lissome/train/loop/learn/gradient_compression.h"
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

// Called from the training thread between steps. Each may be empty.
struct TrainCallbacks {
  std::function<void(const TrainStepRecord&)> on_step;
  std::function<void(const EpochRecord&)> on_epoch;
  std::function<void(const MemoryRecord&)> on_memory;             // every `memory_every` steps, and after the first
  std::function<void(const std::string&)> on_notice;              // each text of TrainRecord::notes, when it is added
  std::function<void(const std::vector<PassResult>&)> on_passes;  // the changes of the training passes
  std::function<void(const Progress&)> on_planning;               // where the search for a step within `memory` is
};

struct TrainOptions {
  LossOptions loss;
  LossFunction loss_function;  // in place of `loss`
  OptimizerOptions optimizer = AdamW{};
  std::vector<ParameterGroup> groups;
  // A folder for a file with the optimizer states and, if `memory` needs it, activations and weights; empty: all of
  // these are in memory.
  std::string offload;
  std::optional<double> learning_rate;  // default: the optimizer's own
  std::string schedule = "constant";    // see parse_schedule()
  int64_t epochs = 1;
  std::optional<int64_t> max_steps;  // ends training earlier and sets the length of schedules
  int64_t batch = 32;                // samples that run at once; 0: as many as fit into memory
  int64_t accumulate = 1;            // batches whose gradients are summed for an update
  bool scale_learning_rate = true;   // multiply it by `accumulate`
  // bf16 and f16 are mixed precision, see apply_autocast(). Empty: f32 or bf16, see choose_precision().
  std::optional<Dtype> precision = Dtype::f32;
  int64_t memory = 0;               // bytes for weights, activations, gradients, states; 0: no limit
  Recompute recompute = KeepAll{};  // which activations are recomputed to fit `memory`
  // To fit `memory`, activations may be kept in bf16, unless check_lossy() finds that gradients change too much.
  bool lossy_activations = false;
  std::vector<std::string> disabled_passes;  // names of training passes to leave out; see training_passes.h
  BatchOptions batches;
  // Updates each weight as soon as the backward pass has computed its gradient, whose memory is then reused: the same
  // bits, less memory. Needs clip_norm 0, accumulate 1 and a precision other than f16, because clipping, accumulation
  // and loss scaling read every gradient before the first update.
  bool update_in_backward = false;
  double clip_norm = 1;                         // largest global norm of gradients; 0: they are not clipped
  std::optional<InitializeOptions> initialize;  // train from scratch; needs a model in train form
  std::optional<EarlyStopOptions>
      early_stop;                       // by the validation loss, or the training loss if there is no validation data
  std::optional<double> average_decay;  // decay of a moving average of weights, which is validated and returned
  int threads = 0;                      // for steps and updates; 0: one for each core that the process may use
  uint64_t seed = 0;                    // for the order of samples, dropout and first weights
  std::vector<TrainMetric> metrics;     // on the validation data, beside the built-in ones that fit
  const GradientHooks* gradient_hooks = nullptr;  // must outlive training
  TrainCallbacks callbacks;
  MonitorOptions monitor;
  int64_t memory_every = 100;  // steps between memory records; 0: none
  std::optional<SnapshotOptions> snapshots;
  std::string resume;  // a folder of snapshots to continue from; empty: train from the beginning
  // Processes that train this model together, each with these options: a batch is spread over them, and all end with
  // the same weights. Must outlive training. Null: this process alone.
  Group* group = nullptr;
  GradientCompression compression;  // how gradients travel between them
  // In train form, batch norms take the statistics of all ranks' samples; a step then cannot run in parts.
  bool synchronize_batch_norm = false;
  // Bytes of gradients that are summed at once while the backward pass goes on, see sums_early(); 0: all after it;
  // empty: chosen by measured times.
  std::optional<int64_t> bucket = int64_t{25} << 20;
};

// Whether gradients are summed over a group while the step that computes them goes on. Not where they are compressed by
// other means than a narrower type, and not where a step may run in parts, whose gradients are added up before:
// with accumulate, a memory limit or a batch as large as fits.
bool sums_early(const TrainOptions& options);
// Whether there are other ranks to synchronize batch norms with.
bool synchronizes_batch_norm(const TrainOptions& options);

// The loss of a training; a function of the user's is one that the model computes itself.
inline LossOptions choose_loss(const TrainOptions& options) {
  LossOptions loss = options.loss;
  if (options.loss_function) loss = {.kind = LossKind::output, .class_weights = {}};
  return loss;
}

struct Trained {
  Program program;  // eval form
  TrainRecord record;
};

// `data` has labels and fits the model's inputs (fit_dataset); so does `validation`, which may be null. Trains the
// tensors of `model` in place. Equal seed, threads and build give equal weights, with or without interruptions. When
// interrupted, it saves a snapshot and returns the model so far. A snapshot that cannot be saved gives a notice, and
// training continues. Throws invalid_input for labels that do not fit the loss or are out of range (naming the sample),
// an empty dataset, an eval-form model with `initialize`, a loss that became NaN or infinity (naming the step, the node
// and the last snapshot), and a gradient with NaN or infinity after weights of its step were updated in the backward
// pass. Throws usage for update_in_backward or lossy_activations with options that exclude them, and the errors of
// find_snapshot(), refuse_other_training(), SnapshotFolder and Group. In a group, rank 0 alone saves snapshots.
Trained train(const Program& model, const Dataset& data, const Dataset* validation, const TrainOptions& options,
              const WorkControl& control = {});

}  // namespace lissome

// Computes loss and gradients of a batch in as many parts as memory needs. Gradients of the parts are summed in f32, so
// that one update sees the whole batch. If a part does not fit into memory, smaller parts run from then on.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lissome/train/optim/loss_scaler.h"
#include "lissome/train/rewrite/pooled_statistics.h"
#include "lissome/train/step/loss.h"
#include "lissome/train/step/training_step.h"

namespace lissome {

// The divisor of a mean loss: the number of samples. With cross entropy it is the number of labels that are not
// ignored, each weighted by its class. `labels`: the targets of the loss, i64 for classes.
double weigh_labels(const LossOptions& loss, const at::Tensor& labels, int64_t samples);

struct BatchStepOptions {
  LossOptions loss;              // the loss of the program
  Dtype precision = Dtype::f32;  // bf16 and f16: see apply_autocast(); f16 scales the loss
  int64_t at_once = 32;          // most samples that run together
  std::optional<int64_t> fixed;  // the only number of samples that the model takes
  int64_t reserved = 0;          // bytes that stay free for the first update
  bool shared = false;           // a batch is a part of an update itself, whose mean somebody else takes
  TrainingStepOptions step;
};

class BatchStep {
 public:
  // The first output of `program` is its loss; the program must outlive the step. `examples` as for TrainingStep.
  // Throws the errors of TrainingStep.
  BatchStep(const Program& program, const std::vector<at::Tensor>& examples, const BatchStepOptions& options);

  // Returns the mean loss over the batch. `batch`: the inputs of the program, samples along their first sizes, labels
  // last. State is written once. Sizes of parts differ by one at most. With a fixed size, the batch is a multiple of
  // it. Parts are averaged: throws invalid_input where a loss of the user's adds its samples up, and notes one that is
  // no mean over samples. Throws over_budget if even the smallest part exceeds the memory limit; state and random
  // numbers are then as before. `taker`: see TrainingStep::run(). A step that gives its gradients away runs a batch as
  // a whole or throws over_budget, after which weights may have changed.
  double run(const std::vector<at::Tensor>& batch, const GradientTaker* taker = nullptr);
  // Gradients of the last run, multiplied by loss_scale(); undefined where the loss does not depend on the weight.
  const std::vector<at::Tensor>& gradients() const { return gradients_; }
  // The divisor of the mean over these inputs, see weigh_labels().
  double weigh(const std::vector<at::Tensor>& inputs) const;
  double loss_scale() const { return scaler_ ? scaler_->scale() : 1; }
  // Runs without consequences: state and random numbers stay as they were. Returns the loss.
  double rehearse(const std::vector<at::Tensor>& batch, const GradientTaker* taker = nullptr);
  // To be called after each update.
  void note_update(bool skipped);

  // Finds by runs on copies of `batch` the largest number of samples up to `most` that fit into memory at once, to
  // within 1/16. Parts have at most that many samples from then on. State and random numbers stay as they were.
  int64_t find_largest(const std::vector<at::Tensor>& batch, int64_t most);

  TrainingStep& step() { return step_; }
  LossScaler* scaler() { return scaler_ ? &*scaler_ : nullptr; }  // null unless f16
  int64_t at_once() const { return at_once_; }
  // Whether parts of any size give the same update: not with batch norm, nor if gradients are given away.
  bool may_split() const { return !fixed_ && !gives_gradients_ && !state_.has_batch_norm(); }
  int64_t least_at_once() const { return range_.first; }
  // Sets the samples of a part from the next run on: at least least_at_once(), and only for a step that may split.
  void set_at_once(int64_t samples);
  // Inputs of the last part that ran, to find the origin of a number.
  const std::vector<at::Tensor>& last_inputs() const { return last_inputs_; }
  // Notes on parts that did not fit into memory and on effects of running parts, each added once.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Part {
    int64_t first, count;
  };
  std::vector<Part> split(int64_t count) const;
  double run_part(std::vector<at::Tensor> inputs, const GradientTaker* taker);
  double run_parts(const std::vector<at::Tensor>& batch, const std::vector<Part>& parts, const GradientTaker* taker);
  void accumulate(double share);
  std::optional<double> try_parts(const std::vector<at::Tensor>& batch, const std::vector<Part>& parts,
                                  const GradientTaker* taker = nullptr);
  bool try_size(const std::vector<at::Tensor>& batch, int64_t size);
  void note_parts(const std::vector<Part>& parts);
  std::optional<double> measure_loss(const std::vector<at::Tensor>& samples);
  void check_mean(const std::vector<at::Tensor>& batch, int64_t at_once);

  const Program& program_;
  LossOptions loss_;
  std::optional<LossScaler> scaler_;
  TrainingStep step_;
  PooledStatistics state_;
  std::pair<int64_t, int64_t> range_;  // of batches that the model takes
  std::optional<int64_t> fixed_;
  const bool gives_gradients_, synchronizes_, shared_;
  int64_t at_once_;
  at::Tensor reserved_;
  std::string refusal_;  // the last error that a part met
  std::vector<at::Tensor> gradients_, last_inputs_;
  std::vector<std::string> notes_;
  bool parts_noted_ = false;
  // The loss is still to be looked at in parts of fewer samples than these.
  int64_t mean_unchecked_below_ = std::numeric_limits<int64_t>::max();
};

}  // namespace lissome

// Loss and gradients of a batch, run in as many parts as memory asks for: gradients of the parts are summed in f32, so
// that one update sees the whole batch. Where a part does not fit into memory, smaller parts are taken from then on.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lissome/train/optim/loss_scaler.h"
#include "lissome/train/rewrite/pooled_statistics.h"
#include "lissome/train/step/loss.h"
#include "lissome/train/step/training_step.h"

namespace lissome {

// What the mean of a loss divides by: the samples; with cross entropy those labels that are not ignored, each by the
// weight of its class. `labels` is what the loss compares with, i64 where they are classes.
double weigh_labels(const LossOptions& loss, const at::Tensor& labels, int64_t samples);

struct BatchStepOptions {
  LossOptions loss;              // that the program ends with
  Dtype precision = Dtype::f32;  // bf16, f16: apply_autocast; f16 scales its loss
  int64_t at_once = 32;          // samples that run together at most
  std::optional<int64_t> fixed;  // the model takes so many samples and no others
  int64_t reserved = 0;          // bytes that the first update will take: they stay free until it comes
  TrainingStepOptions step;
};

class BatchStep {
 public:
  // `program` gives its loss first and stays alive; `examples` as for TrainingStep. Throws what that throws.
  BatchStep(const Program& program, const std::vector<at::Tensor>& examples, const BatchStepOptions& options);

  // Loss, the mean over the batch: the inputs of the program, samples along their first sizes, labels last. State is
  // written once. Parts are of equal sizes or differ by one. With a fixed size, the batch is a multiple of it. When no
  // part is small enough for the limit on memory, throws over_budget, and state and random numbers are as before.
  // `taker`: see TrainingStep::run(). A step that gives its gradients away runs a batch as a whole, or throws
  // over_budget; weights may have been changed then.
  double run(const std::vector<at::Tensor>& batch, const GradientTaker* taker = nullptr);
  // Of the last run, multiplied by loss_scale(); undefined where the loss does not depend on the weight.
  const std::vector<at::Tensor>& gradients() const { return gradients_; }
  double loss_scale() const { return scaler_ ? scaler_->scale() : 1; }
  // A run whose gradients change nothing: state and random numbers stay as they were. Returns the loss.
  double rehearse(const std::vector<at::Tensor>& batch, const GradientTaker* taker = nullptr);
  // After each update.
  void note_update(bool skipped);

  // The largest number of samples up to `most` that fit into memory at once, to within a sixteenth: it has been run, on
  // copies of `batch`. From then on parts have at most that many. State and random numbers stay as they were.
  int64_t find_largest(const std::vector<at::Tensor>& batch, int64_t most);

  TrainingStep& step() { return step_; }
  LossScaler* scaler() { return scaler_ ? &*scaler_ : nullptr; }  // null unless f16
  int64_t at_once() const { return at_once_; }
  // Whether parts of any size mean the same: not with batch norm, nor where gradients are given away.
  bool may_split() const { return !fixed_ && !gives_gradients_ && !state_.has_batch_norm(); }
  int64_t least_at_once() const { return range_.first; }
  // From the next run on; at least least_at_once(), and only of a step that may split.
  void set_at_once(int64_t samples);
  // Inputs of the step of the last part that ran, for who asks where a number comes from.
  const std::vector<at::Tensor>& last_inputs() const { return last_inputs_; }
  // What memory made it do, and what parts change, each said once.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Part {
    int64_t first, count;
  };
  std::vector<Part> split(int64_t count) const;
  double weigh(const std::vector<at::Tensor>& inputs) const;
  double run_part(std::vector<at::Tensor> inputs, const GradientTaker* taker);
  double run_parts(const std::vector<at::Tensor>& batch, const std::vector<Part>& parts, const GradientTaker* taker);
  void accumulate(double share);
  std::optional<double> try_parts(const std::vector<at::Tensor>& batch, const std::vector<Part>& parts,
                                  const GradientTaker* taker = nullptr);
  bool try_size(const std::vector<at::Tensor>& batch, int64_t size);
  void note_parts(const std::vector<Part>& parts);

  const Program& program_;
  LossOptions loss_;
  std::optional<LossScaler> scaler_;
  TrainingStep step_;
  PooledStatistics state_;
  std::pair<int64_t, int64_t> range_;  // of batches that the model takes
  std::optional<int64_t> fixed_;
  const bool gives_gradients_;
  int64_t at_once_;
  at::Tensor reserved_;
  std::string refusal_;  // the last error that a part met
  std::vector<at::Tensor> gradients_, last_inputs_;
  std::vector<std::string> notes_;
  bool parts_noted_ = false;
};

}  // namespace lissome

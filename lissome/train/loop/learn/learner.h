// The model as it learns: the step that computes gradients of a batch, and the optimizer that updates weights by them,
// after the step or inside its backward pass. One optimizer step is compute_gradients(), check_loss(),
// update_weights().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lissome/measure.h"
#include "lissome/train/loop/learn/current_step.h"
#include "lissome/train/loop/learn/gradient_exchange.h"
#include "lissome/train/loop/learn/norm_link.h"
#include "lissome/train/loop/learn/training_model.h"
#include "lissome/train/optim/optimizer.h"
#include "lissome/train/remat/offload_weights.h"
#include "lissome/train/rewrite/backward_update.h"

namespace lissome {

class Learner {
 public:
  // Trains the tensors of `model` in place. `data` and `options` must outlive it. Throws the errors of CurrentStep and
  // Optimizer.
  Learner(TrainingModel model, const Dataset& data, const TrainOptions& options);
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  // One optimizer step.
  struct Moment {
    int64_t step = 1;  // from 1
    StepOptions rates;
    bool save_due = false;  // a snapshot is due after it
  };
  // Returns loss and samples of the batch. Empty if `control` stopped it; everything is then as before. A step that
  // updates weights in its backward pass does so here, with the rates, and cannot be stopped. In a group, `batch` is
  // this rank's part, empty if it has none; the result is of all ranks, and it is not stopped, because others wait for
  // it.
  std::optional<UpdatePart> compute_gradients(const std::vector<at::Tensor>& batch, const Moment& moment,
                                              const WorkControl& control);
  // Updates weights by the gradients of the last batch, or ends the updates of its backward pass. Throws the errors of
  // BackwardUpdate::finish(), which `good_state` ends.
  StepResult update_weights(StepOptions rates, const std::string& good_state);
  // Whether training ends after the last step: `control` stopped it, in a group that of any rank before the step's sum.
  bool must_end(const WorkControl& control) const {
    return exchange_ ? exchange_->last().interrupted : control.stopped();
  }
  // Whether a snapshot is due after the last step, in a group on any rank before the step's sum.
  bool must_save(bool due) const { return exchange_ ? exchange_->last().save_due : due; }
  // Between the ranks of a group; null: this process trains alone.
  GradientExchange* exchange() { return exchange_.get(); }
  // Seconds of updates inside of the last compute_gradients().
  double seconds_in_gradients() const { return backward_update_ ? backward_update_->seconds() : 0; }

  // Throw invalid_input, naming the node or the weight and ending in `good_state`, for a loss of the last batch or a
  // weight that is NaN or infinity. `step` counts from 1. The loss of a step belongs to the weights before it, so it
  // cannot show an error of the last update; check_weights() does.
  void check_loss(double loss, int64_t step, const std::string& good_state) const;
  void check_weights(int64_t step, const std::string& good_state) const;
  // The weight whose gradient of the last batch is the first with NaN or infinity; empty where hooks made it so, or
  // where gradients are gone, as after updates in the backward pass.
  std::string find_nonfinite_gradient() const;

  const TrainingModel& model() const { return model_; }
  CurrentStep& step() { return step_; }
  Optimizer& optimizer() { return optimizer_; }
  const OffloadedWeights& weights() const { return weights_; }
  // Weights and running statistics, each storage once, under the first of its names.
  const NamedTensors& tensors() const { return tensors_; }

 private:
  std::optional<double> run_until_stopped(const std::vector<at::Tensor>& batch, const WorkControl& control);
  void run_uncounted(const Moment& moment);
  UpdatePart compute_shared(const std::vector<at::Tensor>& batch, const Moment& moment, const WorkControl& control);

  OffloadedWeights weights_;  // the first member: weights move back when all other memory is free
  const Dataset& data_;
  const TrainOptions& options_;
  const TrainingModel model_;
  CurrentStep step_;
  const std::vector<std::string> names_;  // of the trained parameters
  const NamedTensors tensors_;
  Optimizer optimizer_;
  std::optional<BackwardUpdate> backward_update_;
  std::unique_ptr<GradientExchange> exchange_;  // in a group; else null
  std::optional<NormLink> norms_;               // where batch norms are synchronized
};

}  // namespace lissome

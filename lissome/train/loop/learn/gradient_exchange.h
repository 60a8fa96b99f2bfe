// An update whose samples are spread over the ranks of a group: each computes gradients of its part, and their sum has
// the same bits on every rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lissome/distributed.h"
#include "lissome/train/optim/optimizer.h"

namespace lissome {

// What one rank, or all together, computed of an update.
struct UpdatePart {
  double loss = 0;           // mean over the samples
  double weight = 0;         // the divisor of the mean, see weigh_labels()
  int64_t samples = 0;       // 0: the rank had no sample of this batch
  bool interrupted = false;  // a rank was asked to end
  bool save_due = false;     // a snapshot is due after the step
};

class GradientExchange {
 public:
  // `state`: what a step writes, such as running statistics, in an order that is the same on all ranks. `group` must
  // outlive this.
  GradientExchange(Group& group, const std::vector<at::Tensor>& state);
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;
  virtual ~GradientExchange() = default;

  // One step is begin(), take() for each gradient that leaves it early, finish(); on all ranks, with samples or
  // without. `part` has no loss yet. `step` counts from 1; `momentum` as StepOptions has it.
  virtual void begin(const UpdatePart& part, int64_t step, std::optional<double> momentum) = 0;
  virtual void take(size_t parameter, const at::Tensor& gradient) = 0;
  // `gradients`: means over the part, in the order of parameters, undefined where the loss does not depend on the
  // parameter or the gradient left early; empty for a part of no samples. Afterwards gradients() are the means over the
  // samples of all ranks, undefined where no rank has any.
  virtual UpdatePart finish(const std::vector<at::Tensor>& gradients, const UpdatePart& part) = 0;

  const std::vector<at::Tensor>& gradients() const { return gradients_; }
  // As of the last finish(): what any rank was asked for.
  const UpdatePart& last() const { return last_; }
  // Leaves out of an optimizer's step what was done to gradients before they were summed.
  virtual void adjust(StepOptions&) const {}
  // For a training of so many steps, what the exchange saves; empty where there is nothing to say.
  virtual std::string describe(int64_t) const { return {}; }
  // What was measured and chosen since the last call; empty: nothing.
  virtual std::string take_note() { return {}; }
  // Gives every rank the state of rank 0.
  void share_state(int64_t step) const;

  // What the next sums depend on, for a snapshot: all ranks call it, and rank 0 gets that of all.
  virtual NamedTensors collect(int64_t step) const = 0;
  // For a new exchange: continues from what was collected, on as many ranks or others. Throws invalid_input for what
  // does not fit, and then changes nothing.
  virtual void restore(const NamedTensors& state) = 0;
  // Whether ranks keep gradients that they did not send.
  virtual bool keeps_gradients() const { return false; }

 protected:
  Group& group() const { return group_; }
  // Sets the results of a step: `found` says for each view whether any rank has the gradient.
  void set_results(const std::vector<at::Tensor>& views, const double* found, const UpdatePart& all);

 private:
  Group& group_;
  std::map<at::ScalarType, std::vector<at::Tensor>> state_;
  std::vector<at::Tensor> gradients_;
  UpdatePart last_;
};

// " of step 7"
std::string name_step(int64_t step);
// The name of what a rank keeps, among what was collected; and whether there is any such.
std::string name_kept(int rank, const std::string& name);
bool has_kept_gradients(const NamedTensors& state);

}  // namespace lissome

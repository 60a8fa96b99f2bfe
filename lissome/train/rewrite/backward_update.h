// Updates weights inside the backward pass: each as soon as its gradient is complete, so that only a few gradients
// exist at a time. Connects BatchStep, which gives gradients away, to Optimizer.
#pragma once

#include <string>
#include <vector>

#include "lissome/train/optim/gradient_hooks.h"
#include "lissome/train/optim/optimizer.h"

namespace lissome {

class BackwardUpdate {
 public:
  // All arguments must outlive it. `names`: the optimizer's parameters, in their order. `hooks` may be null.
  BackwardUpdate(Optimizer& optimizer, const std::vector<std::string>& names, const GradientHooks* hooks);

  // To be called before a step. `options` must not clip or scale.
  void begin(const StepOptions& options);
  // Takes the next gradient of the step, of the parameter `index`. Updates nothing after a gradient that is not finite.
  void take(size_t index, const at::Tensor& gradient);
  // To be called after the step. The step counts as skipped if its first gradient was not finite. Throws invalid_input,
  // naming the parameter, if a later one was not, because some weights are updated then; `advice` ends the message.
  StepResult finish(const std::string& advice) const;
  // Seconds of updates since begin().
  double seconds() const { return seconds_; }

 private:
  Optimizer& optimizer_;
  const std::vector<std::string>& names_;
  const GradientHooks* hooks_;
  StepOptions options_;
  double squares_ = 0, seconds_ = 0;
  int updated_ = 0;
  std::string refused_;  // the first parameter whose gradient was not finite
};

}  // namespace lissome

// Weights that are updated inside the backward pass: each as soon as its gradient is complete, so that no more than a
// few gradients exist at a time. Stands between BatchStep, which gives gradients away, and Optimizer.
#pragma once

#include <string>
#include <vector>

#include "lissome/train/optim/gradient_hooks.h"
#include "lissome/train/optim/optimizer.h"

namespace lissome {

class BackwardUpdate {
 public:
  // All outlive it; `names` are those of the optimizer's parameters, in their order. `hooks` may be null.
  BackwardUpdate(Optimizer& optimizer, const std::vector<std::string>& names, const GradientHooks* hooks);

  // Before a step; `options` without clipping and scale.
  void begin(const StepOptions& options);
  // The next gradient of the step, of the parameter `index`. Nothing is updated any more once one was not finite.
  void take(size_t index, const at::Tensor& gradient);
  // Behind the step. Skipped when the first gradient was not finite. Throws invalid_input, naming the parameter, when a
  // later one was not: a part of the weights has been updated; `advice` ends the message.
  StepResult finish(const std::string& advice) const;
  // Of updates since begin().
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

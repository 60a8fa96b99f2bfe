// See backward_update.h.
#include "lissome/train/rewrite/backward_update.h"

#include <cmath>
#include <limits>

#include "lissome/base.h"
#include "lissome/measure.h"

namespace lissome {

BackwardUpdate::BackwardUpdate(Optimizer& optimizer, const std::vector<std::string>& names, const GradientHooks* hooks)
    : optimizer_(optimizer), names_(names), hooks_(hooks) {
  optimizer_.reserve_states();
}

void BackwardUpdate::begin(const StepOptions& options) {
  options_ = options;
  squares_ = seconds_ = 0, updated_ = 0;
  refused_.clear();
}

void BackwardUpdate::take(size_t index, const at::Tensor& gradient) {
  if (!refused_.empty()) return;
  const Stopwatch watch;
  std::vector<at::Tensor> changed = {gradient};
  if (hooks_ != nullptr) hooks_->apply({names_[index]}, changed);
  const double norm = optimizer_.update(index, changed.front(), options_);
  if (std::isfinite(norm)) {
    squares_ += norm * norm;
    ++updated_;
  } else {
    refused_ = names_[index];
  }
  seconds_ += watch.seconds();
}

StepResult BackwardUpdate::finish(const std::string& advice) const {
  if (refused_.empty()) return {.gradient_norm = std::sqrt(squares_)};
  if (updated_ > 0)
    throw_error(ErrorKind::invalid_input, "the gradient of ", quote(refused_), " is not finite, and ", updated_,
                " other weights had been updated in the backward pass before it was computed, so the step cannot be ",
                "skipped.\n", advice);
  return {.gradient_norm = std::numeric_limits<double>::quiet_NaN(), .skipped = true};
}

}  // namespace lissome

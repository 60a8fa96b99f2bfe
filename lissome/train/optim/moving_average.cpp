#include "lissome/train/optim/moving_average.h"

#include <ATen/core/grad_mode.h>

#include "lissome/base.h"
#include "lissome/train/remat/offload_weights.h"

namespace lissome {

MovingAverage::MovingAverage(std::vector<at::Tensor> tensors, double decay)
    : tensors_(std::move(tensors)), decay_(decay) {
  if (!(decay >= 0 && decay <= 1)) {
    throw_error(ErrorKind::invalid_input, "the decay of a moving average must be in 0..1, not ", decay);
  }
  for (const at::Tensor& tensor : tensors_) averages_.push_back(tensor.detach().clone());
}

void MovingAverage::update() {
  const at::NoGradGuard no_gradients;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].is_floating_point()) {
      averages_[i].lerp_(tensors_[i], 1 - decay_);
    } else {
      averages_[i].copy_(tensors_[i]);
    }
    release_weight(tensors_[i]);
  }
}

void MovingAverage::swap() {
  const at::NoGradGuard no_gradients;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const at::Tensor trained = tensors_[i].clone();
    tensors_[i].copy_(averages_[i]);
    averages_[i].copy_(trained);
    release_weight(tensors_[i]);
  }
}

}  // namespace lissome

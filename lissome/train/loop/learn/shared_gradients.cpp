// See shared_gradients.h.
#include "lissome/train/loop/learn/shared_gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <string>

#include "lissome/program.h"

namespace lissome {

SharedGradients::SharedGradients(Group& group, Dtype dtype, const std::vector<at::Tensor>& parameters,
                                 std::vector<at::Tensor> state)
    : group_(group), dtype_(dtype), state_(std::move(state)) {
  int64_t elements = 0;
  for (const at::Tensor& parameter : parameters) elements += parameter.numel();
  const auto count = static_cast<int64_t>(parameters.size());
  flat_ = at::zeros({elements + count}, at::kFloat);
  int64_t first = 0;
  for (const at::Tensor& parameter : parameters) {
    views_.push_back(flat_.narrow(0, first, parameter.numel()).view(parameter.sizes()));
    first += parameter.numel();
  }
  views_.push_back(flat_.narrow(0, elements, count));
}

UpdatePart SharedGradients::sum(const std::vector<at::Tensor>& gradients, const UpdatePart& part, int64_t step) {
  const at::NoGradGuard no_gradients;
  const std::string what = " of step " + std::to_string(step);
  // A mean over no labels is NaN and must not count.
  const bool counts = part.samples > 0 && part.weight > 0;
  const at::Tensor numbers = at::tensor({counts ? part.loss * part.weight : 0.0, part.weight,
                                         static_cast<double>(part.samples), part.interrupted ? 1.0 : 0.0},
                                        at::kDouble);
  group_.sum(numbers, "the loss" + what);
  const auto* sums = numbers.const_data_ptr<double>();
  const UpdatePart all{.loss = sums[0] / sums[1],
                       .weight = sums[1],
                       .samples = static_cast<int64_t>(sums[2]),
                       .interrupted = sums[3] > 0};
  interrupted_ = all.interrupted;
  flat_.zero_();
  const at::Tensor& has_gradient = views_.back();
  for (size_t i = 0; counts && i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    views_[i].copy_(gradients[i]).mul_(part.weight / all.weight);
    has_gradient[static_cast<int64_t>(i)] = 1;
  }
  sum_flat("the gradients" + what);
  gradients_.assign(views_.begin(), views_.end() - 1);
  for (size_t i = 0; i < gradients_.size(); ++i) {
    if (has_gradient.const_data_ptr<float>()[i] == 0) gradients_[i] = at::Tensor();
  }
  return all;
}

void SharedGradients::sum_flat(const std::string& what) {
  if (dtype_ == Dtype::f32) return group_.sum(flat_, what);
  const at::Tensor narrow = flat_.to(scalar_type_of(dtype_));
  group_.sum(narrow, what);
  flat_.copy_(narrow);
}

void SharedGradients::share_state(int64_t step) {
  const at::NoGradGuard no_gradients;
  for (const at::Tensor& tensor : state_) group_.share(tensor, "the state of step " + std::to_string(step));
}

}  // namespace lissome

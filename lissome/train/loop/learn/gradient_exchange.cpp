// See gradient_exchange.h.
#include "lissome/train/loop/learn/gradient_exchange.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <algorithm>

namespace lissome {

std::string name_step(int64_t step) { return " of step " + std::to_string(step); }

std::string name_kept(int rank, const std::string& name) { return "rank " + std::to_string(rank) + "/" + name; }

bool has_kept_gradients(const NamedTensors& state) {
  return std::ranges::any_of(state, [](const auto& entry) { return entry.first.starts_with(name_kept(0, "")); });
}

GradientExchange::GradientExchange(Group& group, const std::vector<at::Tensor>& state) : group_(group) {
  for (const at::Tensor& tensor : state) state_[tensor.scalar_type()].push_back(tensor);
}

// One message for each dtype: many small ones would wait for the link one by one.
void GradientExchange::share_state(int64_t step) const {
  const at::NoGradGuard no_gradients;
  for (const auto& [dtype, tensors] : state_) {
    std::vector<at::Tensor> flattened;
    for (const at::Tensor& tensor : tensors) flattened.push_back(tensor.reshape({-1}));
    const at::Tensor message = at::cat(flattened);
    group_.share(message, "the state" + name_step(step));
    if (group_.rank() == 0) continue;
    int64_t first = 0;
    for (const at::Tensor& tensor : tensors) {
      tensor.copy_(message.narrow(0, first, tensor.numel()).view(tensor.sizes()));
      first += tensor.numel();
    }
  }
}

void GradientExchange::set_results(const std::vector<at::Tensor>& views, const double* found, const UpdatePart& all) {
  last_ = all;
  gradients_ = views;
  for (size_t i = 0; i < gradients_.size(); ++i) {
    if (found[i] == 0) gradients_[i] = at::Tensor();
  }
}

}  // namespace lissome

// See gradient_exchange.h.
#include "lissome/train/loop/learn/gradient_exchange.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

namespace lissome {

std::string name_step(int64_t step) { return " of step " + std::to_string(step); }

std::string name_kept(int rank, const std::string& name) { return "rank " + std::to_string(rank) + "/" + name; }

bool has_kept_gradients(const NamedTensors& state) {
  return std::ranges::any_of(state, [](const auto& entry) { return entry.first.starts_with(name_kept(0, "")); });
}

void GradientExchange::share_state(int64_t step) const {
  const at::NoGradGuard no_gradients;
  for (const at::Tensor& tensor : state_) group_.share(tensor, "the state" + name_step(step));
}

void GradientExchange::set_results(const std::vector<at::Tensor>& views, const double* found, const UpdatePart& all) {
  last_ = all;
  gradients_ = views;
  for (size_t i = 0; i < gradients_.size(); ++i) {
    if (found[i] == 0) gradients_[i] = at::Tensor();
  }
}

}  // namespace lissome

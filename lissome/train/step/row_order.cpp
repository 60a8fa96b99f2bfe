#include "lissome/train/step/row_order.h"

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <map>

namespace lissome {

WeightsInRowOrder::WeightsInRowOrder(const Program& model) : program_(model) {
  const auto is_candidate = [](const at::Tensor& tensor) {
    return tensor.layout() == at::kStrided && tensor.is_floating_point() && tensor.numel() > 0;
  };
  std::map<const void*, int> users;
  for (const Weight& weight : program_.weights)
    if (weight.tensor.layout() == at::kStrided) ++users[weight.tensor.storage().data()];
  for (Weight& weight : program_.weights) {
    const at::Tensor tensor = weight.tensor;
    if (weight.role != WeightRole::parameter || !is_candidate(tensor) || tensor.is_contiguous()) continue;
    if (users.at(tensor.storage().data()) > 1) continue;
    weight.tensor = tensor.detach().contiguous();
    copies_.emplace_back(tensor, weight.tensor);
  }
}

void WeightsInRowOrder::copy_back() const {
  const c10::NoGradGuard without_gradients;
  for (const auto& [tensor, copy] : copies_) tensor.copy_(copy);
}

}  // namespace lissome

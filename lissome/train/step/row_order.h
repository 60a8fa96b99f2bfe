// Copies weights that are in another order than row-major (channels-last, transposed): updates and kernels of training
// need row-major weights.
#pragma once

#include <utility>
#include <vector>

#include "lissome/program.h"

namespace lissome {

class WeightsInRowOrder {
 public:
  // Copies the parameters of `model` that are not row-major and share their memory with no other weight.
  explicit WeightsInRowOrder(const Program& model);

  const Program& program() const { return program_; }
  // Copies the current values of the copies into the tensors of the model.
  void copy_back() const;

 private:
  Program program_;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  // the model's tensor, its copy
};

}  // namespace lissome

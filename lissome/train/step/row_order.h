// Weights that lie in memory in another order than that of rows (channels-last, transposed): updates and kernels of
// training take the order of rows.
#pragma once

#include <utility>
#include <vector>

#include "lissome/program.h"

namespace lissome {

class WeightsInRowOrder {
 public:
  // Parameters of `model` that share their memory with no other weight are copied where they lie otherwise.
  explicit WeightsInRowOrder(const Program& model);

  const Program& program() const { return program_; }
  // What the copies hold now, into the tensors of the model.
  void copy_back() const;

 private:
  Program program_;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  // the model's tensor, its copy
};

}  // namespace lissome

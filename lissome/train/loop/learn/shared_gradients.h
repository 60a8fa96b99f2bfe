// An update whose samples are spread over the ranks of a group: each computes gradients of its part, and the sum has
// the same bits on every rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lissome/base.h"
#include "lissome/distributed.h"

namespace lissome {

// What one rank, or all together, computed of an update.
struct UpdatePart {
  double loss = 0;           // mean over the samples
  double weight = 0;         // the divisor of the mean, see weigh_labels()
  int64_t samples = 0;       // 0: the rank had no sample of this batch
  bool interrupted = false;  // a rank was asked to end
};

class SharedGradients {
 public:
  // `parameters`: gradients have their sizes. `state`: what a step writes, such as running statistics. Both in an order
  // that is the same on all ranks. `group` must outlive this.
  // Gradients travel, and are summed, in `dtype`: f32, bf16 or f16.
  SharedGradients(Group& group, Dtype dtype, const std::vector<at::Tensor>& parameters, std::vector<at::Tensor> state);

  // `gradients`: means over the part, undefined where the loss does not depend on the parameter, empty for a part of no
  // samples. Afterwards gradients() are the means over the samples of all ranks.
  UpdatePart sum(const std::vector<at::Tensor>& gradients, const UpdatePart& part, int64_t step);
  const std::vector<at::Tensor>& gradients() const { return gradients_; }
  bool interrupted() const { return interrupted_; }  // as of the last sum(): whether a rank was asked to end
  // Gives every rank the state of rank 0.
  void share_state(int64_t step);

 private:
  void sum_flat(const std::string& what);

  Group& group_;
  const Dtype dtype_;
  at::Tensor flat_;                // f32: the gradients of all parameters, and for each whether it has one
  std::vector<at::Tensor> views_;  // of flat_
  std::vector<at::Tensor> state_, gradients_;
  bool interrupted_ = false;
};

}  // namespace lissome

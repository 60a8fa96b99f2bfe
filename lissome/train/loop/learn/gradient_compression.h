// How gradients travel between the processes of a group.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <variant>

#include "lissome/base.h"

namespace lissome {

class Group;  // lissome/distributed.h

// Every number, in f32, bf16 or f16.
struct DenseGradients {
  Dtype dtype = Dtype::f32;
};

// The `share` of each gradient's elements that are largest; what is not sent is added to the gradient of the next step.
// Each process clips its gradients before, and SGD's momentum is taken before the selection (Lin et al. 2018, Deep
// Gradient Compression, arXiv 1712.01887).
struct TopKGradients {
  double share = 0.01;         // above 0, at most 1
  int64_t dense_steps = 1000;  // first steps, in which every number travels
};

// Gradients of matrices as products of two matrices with `rank` columns, found by one power iteration a step from those
// of the step before; what the product lacks is added to the gradient of the next step (Vogels et al. 2019, PowerSGD,
// arXiv 1905.13727). A convolution's weight is a matrix of its output channels.
struct PowerSgdGradients {
  int64_t rank = 4;            // 1 to 1024
  int64_t dense_steps = 1000;  // as above
};

// Replaces `gradients`, f32 numbers of all parameters in their order, by their sum over the ranks of `group`, with the
// same bits on each. All ranks call it in each step.
using GradientSum = std::function<void(Group& group, const at::Tensor& gradients, int64_t step)>;

using GradientCompression = std::variant<DenseGradients, TopKGradients, PowerSgdGradients, GradientSum>;

// "topk:0.01 after 1000 steps": equal texts for equal compressions, but for functions, which cannot be compared.
std::string describe_compression(const GradientCompression& compression);

}  // namespace lissome

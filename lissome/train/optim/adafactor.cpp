// Adafactor as passes of ATen's ops: its factors are means over rows and columns, and its step depends on norms of the
// whole weight and update, so one fused pass could not do it.
#include <algorithm>
#include <cmath>

#include "lissome/train/optim/update.h"

namespace lissome {
namespace {

double root_mean_square(const at::Tensor& tensor) {
  return tensor.norm(2).item<double>() / std::sqrt(static_cast<double>(tensor.numel()));
}

// The mean of squares along one dimension, without the squares.
at::Tensor mean_squares(const at::Tensor& gradient, int64_t dimension) {
  return gradient.norm(2, dimension, true).square_().div_(gradient.size(dimension));
}

at::Tensor estimate_variance(const UpdateTensors& tensors, const at::Tensor& g, double share, double eps1) {
  if (g.dim() < 2) return tensors.states[0].lerp_(g.square(), share).clone();
  const at::Tensor &row = tensors.states[0], &column = tensors.states[1];
  row.lerp_(mean_squares(g, -1), share);
  column.lerp_(mean_squares(g, -2), share);
  return row.matmul(column).div_(row.mean(-2, true).clamp_min_(eps1));
}

}  // namespace

void update_adafactor(const Adafactor& options, const UpdateMoment& moment, const UpdateTensors& tensors) {
  const at::Tensor g = tensors.gradient.mul(moment.gradient_scale);
  const double step = static_cast<double>(moment.step);
  const double rate =
      std::max(options.eps2, root_mean_square(tensors.weight)) * std::min(moment.lr, 1 / std::sqrt(step));
  if (moment.weight_decay != 0) tensors.weight.mul_(1 - moment.lr * moment.weight_decay);
  const at::Tensor variance = estimate_variance(tensors, g, std::pow(step, options.beta2_decay), options.eps1);
  const at::Tensor update = variance.clamp_min_(options.eps1 * options.eps1).rsqrt_().mul_(g);
  tensors.weight.sub_(update, rate / std::max(1.0, root_mean_square(update) / options.d));
  if (tensors.bf16_copy.defined()) tensors.bf16_copy.copy_(tensors.weight);
}

}  // namespace lissome

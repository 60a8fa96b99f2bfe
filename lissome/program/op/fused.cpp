// Linear and convolution with what follows them, as passes fuse them and kernels run them:
//   act(linear(x, weight, bias) + residual)      act(convolution(x, weight, bias, ...) + residual)
// The residual, where there is one, is added before the activation and broadcasts as `+` does. Composed of ATen's ops,
// so gradients, autocast and every device are ATen's.
#include <ATen/ops/convolution.h>
#include <ATen/ops/linear.h>

#include "lissome/program/activation.h"
#include "lissome/program/op/register.h"

namespace lissome {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

at::Tensor finish(at::Tensor sum, std::string_view act, const OptionalTensor& residual) {
  if (residual && residual->defined()) sum = sum.add(*residual);
  return apply_activation(act, sum);
}

at::Tensor linear_act(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias, std::string_view act,
                      const OptionalTensor& residual) {
  return finish(at::linear(x, weight, bias), act, residual);
}

at::Tensor conv_act(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias, at::IntArrayRef stride,
                    at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding,
                    int64_t groups, std::string_view act, const OptionalTensor& residual) {
  return finish(at::convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups), act,
                residual);
}

}  // namespace

std::vector<OpRow> list_fused_ops() {
  return {
      {"linear_act(Tensor x, Tensor weight, Tensor? bias, str act, Tensor? residual=None) -> Tensor",
       wrap_kernel(linear_act)},
      {"conv_act(Tensor x, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
       "bool transposed, SymInt[] output_padding, SymInt groups, str act, Tensor? residual=None) -> Tensor",
       wrap_kernel(conv_act)},
  };
}

}  // namespace lissome

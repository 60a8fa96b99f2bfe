// Linear and convolution that apply a residual and an activation on the way out: what passes fuse into and kernels run.
#include <ATen/ops/convolution.h>
#include <ATen/ops/linear.h>

#include "lissome/program/activation.h"
#include "lissome/program/op/register.h"

namespace lissome {
namespace {

using MaybeTensor = std::optional<at::Tensor>;

// act(product + residual). The product is fresh, so no result aliases an input, whatever the activation.
at::Tensor finish(at::Tensor product, const MaybeTensor& residual, std::string_view act) {
  if (residual) product = product.add(*residual);
  return apply_activation(act, product);
}

at::Tensor linear_act(const at::Tensor& x, const at::Tensor& weight, const MaybeTensor& bias, std::string_view act,
                      const MaybeTensor& residual) {
  return finish(at::linear(x, weight, bias), residual, act);
}

at::Tensor conv_act(const at::Tensor& x, const at::Tensor& weight, const MaybeTensor& bias, at::IntArrayRef stride,
                    at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding,
                    int64_t groups, std::string_view act, const MaybeTensor& residual) {
  return finish(at::convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups),
                residual, act);
}

}  // namespace

std::vector<OpRow> list_fused_ops() {
  return {
      {"linear_act(Tensor x, Tensor weight, Tensor? bias, str act, Tensor? residual=None) -> Tensor",
       wrap_kernel(linear_act)},
      {"conv_act(Tensor x, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, "
       "int[] output_padding, int groups, str act, Tensor? residual=None) -> Tensor",
       wrap_kernel(conv_act)},
  };
}

}  // namespace lissome

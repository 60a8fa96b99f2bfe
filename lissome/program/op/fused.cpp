// Linear and convolution with what follows them, as passes fuse them and kernels run them:
//   act(linear(x, weight, bias) + residual)      act(convolution(x, weight, bias, ...) + residual)
// and a linear in bf16 with the casts around it: to bf16 of what is f32, of the result to `dtype`. Where that is f32,
// kernels may leave sums as they are instead of rounding them to bf16 in between. The residual, where there is one, is
// added before the activation and broadcasts as `+` does. add_products is a product of matrices whose sums go on from
// those of an earlier one: where a long sum is made in parts, our kernel adds in the order of the whole one. Composed
// of ATen's ops, so gradients, autocast and every device are ATen's.
#include <ATen/ops/addmm.h>
#include <ATen/ops/linear.h>

#include "lissome/program/activation.h"
#include "lissome/program/op/convolve.h"
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

at::Tensor linear_bf16(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias, std::string_view act,
                       const OptionalTensor& residual, at::ScalarType dtype) {
  OptionalTensor rounded;
  if (bias && bias->defined()) rounded = bias->to(at::kBFloat16);
  const at::Tensor sum = at::linear(x.to(at::kBFloat16), weight.to(at::kBFloat16), rounded);
  return finish(sum, act, residual).to(dtype);
}

at::Tensor add_products(const at::Tensor& sum, const at::Tensor& self, const at::Tensor& mat2) {
  return at::addmm(sum, self, mat2);
}

at::Tensor conv_act(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias, at::IntArrayRef stride,
                    at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding,
                    int64_t groups, std::string_view act, const OptionalTensor& residual) {
  return finish(convolve(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups), act,
                residual);
}

}  // namespace

std::vector<OpRow> list_fused_ops() {
  return {
      {"linear_act(Tensor x, Tensor weight, Tensor? bias, str act, Tensor? residual=None) -> Tensor",
       wrap_kernel(linear_act)},
      {"linear_bf16(Tensor x, Tensor weight, Tensor? bias, str act, Tensor? residual, ScalarType dtype) -> Tensor",
       wrap_kernel(linear_bf16)},
      {"add_products(Tensor sum, Tensor self, Tensor mat2) -> Tensor", wrap_kernel(add_products)},
      {"conv_act(Tensor x, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
       "bool transposed, SymInt[] output_padding, SymInt groups, str act, Tensor? residual=None) -> Tensor",
       wrap_kernel(conv_act)},
  };
}

}  // namespace lissome

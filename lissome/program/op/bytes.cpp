// Ops from u8 to u8, between the layers of quantized.cpp:
//
//   max_pool2d_u8   aten::max_pool2d of the numbers behind u8
//   avg_pool2d_u8   aten::avg_pool2d of them: acc = sum of (x - x_zero), exact in integers, padding counting as the
//   number
//                   0; y = quantize(f32(acc) * (x_scale / divisor), out_scale, out_zero), the quotient in f32
//   lut_u8        y = table[x] of 256 entries: any function of one number, quantized before and behind
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/ones_like.h>

#include "lissome/base.h"
#include "lissome/program/op/check_arguments.h"
#include "lissome/program/op/quantized.h"
#include "lissome/program/op/register.h"

namespace lissome {
namespace {

at::Tensor max_pool2d_u8(const at::Tensor& x, at::IntArrayRef kernel_size, at::IntArrayRef stride,
                         at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode) {
  check_arguments(x.scalar_type() == at::kByte, "max_pool2d_u8 takes u8");
  return at::max_pool2d(x.to(at::kFloat), kernel_size, stride, padding, dilation, ceil_mode).to(at::kByte);
}

at::Tensor avg_pool2d_u8(const at::Tensor& x, double x_scale, int64_t x_zero, at::IntArrayRef kernel_size,
                         at::IntArrayRef stride, at::IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                         std::optional<int64_t> divisor_override, double out_scale, int64_t out_zero) {
  check_arguments(x.scalar_type() == at::kByte, "avg_pool2d_u8 takes u8");
  check_zero(x_zero);
  const auto pool = [&](const at::Tensor& numbers, std::optional<int64_t> divisor) {
    return at::avg_pool2d(numbers, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor);
  };
  const at::Tensor sums = pool(x.to(at::kDouble).sub(static_cast<double>(x_zero)), 1).round().to(at::kFloat);
  // How many numbers ATen divides by follows from ones, whose sum it divides.
  const at::Tensor ones = at::ones_like(x, at::kDouble);
  const at::Tensor divisor = pool(ones, 1).div(pool(ones, divisor_override)).round().to(at::kFloat);
  const at::Tensor scale = at::full_like(divisor, static_cast<double>(static_cast<float>(x_scale))).div(divisor);
  return quantize(sums.mul(scale), out_scale, out_zero);
}

at::Tensor lut_u8(const at::Tensor& x, const at::Tensor& table) {
  check_arguments(x.scalar_type() == at::kByte && table.scalar_type() == at::kByte, "lut_u8 takes u8 and gives u8");
  check_arguments(table.dim() == 1 && table.size(0) == 256, "a table has 256 entries");
  return table.index_select(0, x.reshape(-1).to(at::kLong)).reshape(x.sizes());
}

}  // namespace

std::vector<OpRow> list_byte_ops() {
  return {
      {"max_pool2d_u8(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, "
       "bool ceil_mode=False) -> Tensor",
       wrap_kernel(max_pool2d_u8)},
      {"avg_pool2d_u8(Tensor self, float x_scale, int x_zero, int[2] kernel_size, int[2] stride, int[2] padding, "
       "bool ceil_mode, bool count_include_pad, int? divisor_override, float out_scale, int out_zero) -> Tensor",
       wrap_kernel(avg_pool2d_u8)},
      {"lut_u8(Tensor self, Tensor table) -> Tensor", wrap_kernel(lut_u8)},
  };
}

}  // namespace lissome

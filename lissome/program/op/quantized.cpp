// int8 with the scales in sight: u8 activations x = (u8 - zero) * scale, s8 weights w = s8 * scale[channel]. The
// references here are exact: integer products are summed in f64, which holds them all, and rounded to f32 once, as the
// conversion of an int32 sum is. Kernels may differ by the order of the few f32 operations after the sum.
#include <ATen/ops/convolution.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/where.h>

#include "lissome/program/activation.h"
#include "lissome/program/op/register.h"

namespace lissome {
namespace {

using MaybeTensor = std::optional<at::Tensor>;

// clamp(round_half_even(x * (1 / scale)) + zero, 0, 255), in f32. NaN, which u8 cannot hold, becomes the zero point.
at::Tensor quantize(const at::Tensor& x, double scale, int64_t zero_point) {
  const auto inverse = static_cast<double>(1.0f / static_cast<float>(scale));
  const at::Tensor levels = x.to(at::kFloat).mul(inverse).nan_to_num(0.0, INFINITY, -INFINITY).round();
  return levels.add(static_cast<double>(zero_point)).clamp(0, 255).to(at::kByte);
}

at::Tensor dequantize(const at::Tensor& x, double scale, int64_t zero_point) {
  return x.to(at::kFloat).sub(static_cast<double>(zero_point)).mul(static_cast<double>(static_cast<float>(scale)));
}

// sums: f64 integers [..., channels] or [N, channels, ...]; then * scales + bias, residual, activation, in f32.
at::Tensor finish(const at::Tensor& sums, const at::Tensor& scales, const MaybeTensor& bias, bool channels_last,
                  const MaybeTensor& residual, std::string_view act) {
  std::vector<int64_t> shape(static_cast<size_t>(sums.dim()), 1);
  shape[channels_last ? shape.size() - 1 : 1] = -1;
  at::Tensor y = sums.to(at::kFloat).mul(scales.view(shape));
  if (bias) y = y.add(bias->view(shape));
  if (residual) y = y.add(*residual);
  return apply_activation(act, y);
}

at::Tensor scale_channels(double x_scale, const at::Tensor& weight_scales) {
  return weight_scales.mul(static_cast<double>(static_cast<float>(x_scale)));
}

at::Tensor linear_int8(const at::Tensor& x, double x_scale, int64_t x_zero, const at::Tensor& weight,
                       const at::Tensor& weight_scales, const MaybeTensor& bias, std::string_view act,
                       const MaybeTensor& residual) {
  const at::Tensor levels = x.to(at::kDouble).sub(static_cast<double>(x_zero));
  const at::Tensor sums = at::linear(levels, weight.to(at::kDouble));
  return finish(sums, scale_channels(x_scale, weight_scales), bias, true, residual, act);
}

at::Tensor linear_int8_u8(const at::Tensor& x, double x_scale, int64_t x_zero, const at::Tensor& weight,
                          const at::Tensor& weight_scales, const MaybeTensor& bias, std::string_view act,
                          const MaybeTensor& residual, double out_scale, int64_t out_zero) {
  return quantize(linear_int8(x, x_scale, x_zero, weight, weight_scales, bias, act, residual), out_scale, out_zero);
}

// Padding is zero, that is the zero point of the input.
at::Tensor conv_int8(const at::Tensor& x, double x_scale, int64_t x_zero, const at::Tensor& weight,
                     const at::Tensor& weight_scales, const MaybeTensor& bias, at::IntArrayRef stride,
                     at::IntArrayRef padding, at::IntArrayRef dilation, int64_t groups, std::string_view act,
                     const MaybeTensor& residual) {
  const at::Tensor levels = x.to(at::kDouble).sub(static_cast<double>(x_zero));
  const std::vector<int64_t> zeros(stride.size(), 0);
  const at::Tensor sums = at::convolution(levels, weight.to(at::kDouble), {}, stride, padding, dilation, false, zeros,
                                          groups);
  return finish(sums, scale_channels(x_scale, weight_scales), bias, false, residual, act);
}

at::Tensor conv_int8_u8(const at::Tensor& x, double x_scale, int64_t x_zero, const at::Tensor& weight,
                        const at::Tensor& weight_scales, const MaybeTensor& bias, at::IntArrayRef stride,
                        at::IntArrayRef padding, at::IntArrayRef dilation, int64_t groups, std::string_view act,
                        const MaybeTensor& residual, double out_scale, int64_t out_zero) {
  return quantize(conv_int8(x, x_scale, x_zero, weight, weight_scales, bias, stride, padding, dilation, groups, act,
                            residual),
                  out_scale, out_zero);
}

// A scale and zero point for each row of the last dimension, found while running: low = min(row, 0), high = max(row, 0),
// scale = (high - low) / 255 (1 where the row is all zeros), zero = round_half_even(-low / scale), all in f32. A row with
// NaN has a scale of NaN, and so gives NaN.
at::Tensor linear_dynamic_int8(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& weight_scales,
                               const MaybeTensor& bias, std::string_view act, const MaybeTensor& residual) {
  const at::Tensor row = x.to(at::kFloat);
  const at::Tensor low = row.amin({-1}, true).clamp_max(0.0), high = row.amax({-1}, true).clamp_min(0.0);
  at::Tensor scale = high.sub(low).div(255);
  scale = at::where(scale.eq(0), 1.0, scale);
  const at::Tensor inverse = scale.reciprocal();
  const at::Tensor zero = low.neg().mul(inverse).nan_to_num(0.0).round().clamp(0, 255);
  const at::Tensor levels =
      row.mul(inverse).nan_to_num(0.0, INFINITY, -INFINITY).round().add(zero).clamp(0, 255).sub(zero);
  const at::Tensor sums = at::linear(levels.to(at::kDouble), weight.to(at::kDouble));
  // The row's scale first, then the channel's: one rounding each, in this order.
  const at::Tensor y = sums.to(at::kFloat).mul(scale);
  return finish(y, weight_scales, bias, true, residual, act);
}

}  // namespace

std::vector<OpRow> list_quantized_ops() {
  return {
      {"quantize(Tensor x, float scale, int zero_point) -> Tensor", wrap_kernel(quantize)},
      {"dequantize(Tensor x, float scale, int zero_point) -> Tensor", wrap_kernel(dequantize)},
      {"linear_int8(Tensor x, float x_scale, int x_zero, Tensor weight, Tensor weight_scales, Tensor? bias, str act, "
       "Tensor? residual=None) -> Tensor",
       wrap_kernel(linear_int8)},
      {"linear_int8_u8(Tensor x, float x_scale, int x_zero, Tensor weight, Tensor weight_scales, Tensor? bias, str act, "
       "Tensor? residual, float out_scale, int out_zero) -> Tensor",
       wrap_kernel(linear_int8_u8)},
      {"conv_int8(Tensor x, float x_scale, int x_zero, Tensor weight, Tensor weight_scales, Tensor? bias, int[] stride, "
       "int[] padding, int[] dilation, int groups, str act, Tensor? residual=None) -> Tensor",
       wrap_kernel(conv_int8)},
      {"conv_int8_u8(Tensor x, float x_scale, int x_zero, Tensor weight, Tensor weight_scales, Tensor? bias, "
       "int[] stride, int[] padding, int[] dilation, int groups, str act, Tensor? residual, float out_scale, "
       "int out_zero) -> Tensor",
       wrap_kernel(conv_int8_u8)},
      {"linear_dynamic_int8(Tensor x, Tensor weight, Tensor weight_scales, Tensor? bias, str act, "
       "Tensor? residual=None) -> Tensor",
       wrap_kernel(linear_dynamic_int8)},
  };
}

}  // namespace lissome

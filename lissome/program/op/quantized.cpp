// Ops on plain u8 and s8 tensors with scales beside them. What is written here is what every kernel computes:
//
//   quantize(x, scale, zero)     t = x * (1 / scale) in f32; clamped to [-zero, 255 - zero], NaN to -zero;
//                                u8(round half to even(t) + zero)
//   dequantize(q, scale, zero)   f32(q - zero) * scale
//   linear_int8, conv_int8       acc = sum of (x - x_zero) * weight, exact in integers; outside of a convolution's
//                                borders lies the number 0, which is x_zero
//                                y = f32(acc) * (x_scale * weight_scales[channel]) + bias[channel], the product of the
//                                scales rounded to f32, then one rounding (a fused multiply-add)
//                                y = act(y + residual); in the ..._u8 forms quantize(y, out_scale, out_zero). A
//                                convolution's residual may be u8: y + f32(residual - residual_zero) * residual_scale,
//                                one rounding
//   linear_dynamic_int8          the same with u8 made from x row by row (rows along the last dimension):
//                                low = min(0, smallest), high = max(0, largest), scale = (high - low) / 255, 1 where
//                                that is below 1e-30; zero = round half to even(-low * (1 / scale)) within 0..255.
//                                A row that holds NaN or infinity gives NaN before the activation. Rows of bf16 give
//                                bf16, rounded once, at the end
//   linear_group                 weights of 8 bits (s8 [out, in]) or 4 (u8 [out, in / 2], the even input in the low
//   half,
//                                two's complement) with scales bf16 [out, in / size] for groups of `size` inputs; x as
//                                s8 in the same groups: scale = largest / 127, 1 where that is below 1e-30, round half
//                                to even(x * (1 / scale)); NaN or infinity gives the scale NaN. y = sum over groups of
//                                f32(acc) * (weight scale * x scale), the product rounded to f32; y = act(y + bias +
//                                residual)
//   embedding_group              rows of such a weight: f32(number) * scale
//   conv_transposed_int8         the same for a transposed convolution of weight s8 [in, out, height, width] whose
//   stride
//                                is its window: no two products meet in one result
//   attention_int8               softmax(q k^T * scale + mask) v of f32 operands [batch, heads, rows, size]: q as rows
//                                of linear_dynamic_int8; k symmetric s8 row by row, v column by column: scale =
//                                largest / 127, 1 where that is below 1e-30, round half to even(x * (1 / scale)); NaN
//                                or infinity gives the scale NaN. Scores f32(acc) * (scale of k * scale of q), then
//                                * scale + mask; weights round half to even(255 * exp(score - largest)); y =
//                                f32(acc) * (scale of v * (1 / sum of weights)), zeros where nothing is seen
//
// Weights are s8 [out, in] or [out, in / groups, ...], symmetric, one f32 scale an output channel. With weights of at
// least -127 an s32 holds every acc of up to 66,311 products.
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lissome/base.h"
#include "lissome/program/activation.h"
#include "lissome/program/op/check_arguments.h"
#include "lissome/program/op/convolve.h"
#include "lissome/program/op/quantized.h"
#include "lissome/program/op/register.h"

namespace lissome {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

// f32(1) / f32(scale), as a kernel has it.
double invert_scale(double scale) {
  const float narrow = static_cast<float>(scale);
  check_arguments(std::isfinite(narrow) && narrow > 0, "a scale must be a positive f32");
  return static_cast<double>(1.0f / narrow);
}

}  // namespace

void check_zero(int64_t zero) { check_arguments(zero >= 0 && zero <= 255, "a zero point must lie in 0..255"); }

at::Tensor quantize(const at::Tensor& x, double scale, int64_t zero_point) {
  check_zero(zero_point);
  const auto low = static_cast<double>(-zero_point);
  const at::Tensor scaled = x.to(at::kFloat).mul(invert_scale(scale));
  const at::Tensor clamped = at::where(scaled.isnan(), low, scaled.clamp(low, low + 255));
  return clamped.round().add(static_cast<double>(zero_point)).to(at::kByte);
}

namespace {

at::Tensor dequantize(const at::Tensor& x, double scale, int64_t zero_point) {
  check_arguments(x.scalar_type() == at::kByte, "dequantize takes u8");
  check_zero(zero_point);
  return x.to(at::kFloat).sub(static_cast<double>(zero_point)).mul(static_cast<double>(static_cast<float>(scale)));
}

// Per-channel numbers along dimension `dim` of a tensor of `rank` dimensions.
at::Tensor along(const at::Tensor& channels, int64_t rank, int64_t dim) {
  std::vector<int64_t> sizes(static_cast<size_t>(rank), 1);
  sizes[static_cast<size_t>(dim)] = -1;
  return channels.reshape(sizes);
}

struct Range {
  double scale = 1;
  int64_t zero = 0;
};

// What follows the integer sums. Doubles hold f32 products exactly, so rounding happens once, as in a fused
// multiply-add. `multiplier` is f32; `range` is a u8 residual's.
at::Tensor scale_sums(const at::Tensor& sums, const at::Tensor& multiplier, const OptionalTensor& bias,
                      int64_t channel_dim, std::string_view act, const OptionalTensor& residual, Range range = {}) {
  at::Tensor y = sums.to(at::kFloat).to(at::kDouble).mul(multiplier.to(at::kDouble));
  if (bias && bias->defined()) y = y.add(along(bias->to(at::kDouble), sums.dim(), channel_dim));
  y = y.to(at::kFloat);
  if (residual && residual->defined() && residual->scalar_type() == at::kByte) {
    check_zero(range.zero);
    const at::Tensor steps = residual->to(at::kDouble).sub(static_cast<double>(range.zero));
    y = steps.mul(static_cast<double>(static_cast<float>(range.scale))).add(y).to(at::kFloat);
  } else if (residual && residual->defined()) {
    y = y.add(*residual);
  }
  return apply_activation(act, y);
}

void check_operands(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scales, int64_t x_zero) {
  check_arguments(x.scalar_type() == at::kByte, "the int8 ops take u8 activations");
  check_arguments(weight.scalar_type() == at::kChar, "the int8 ops take s8 weights");
  check_arguments(scales.dim() == 1 && scales.size(0) == weight.size(0),
                  "there must be one weight scale an output channel");
  check_zero(x_zero);
}

// So many products of u8 or s8 with s8 have sums that are exact in f32, which is several times as fast as f64.
constexpr int64_t kExactInFloat = (int64_t{1} << 24) / (255 * 128);

// The sums of products of u8 or s8, without their zero point, with s8: f64.
at::Tensor multiply_exactly(const at::Tensor& shifted, const at::Tensor& weight) {
  const at::Tensor x = shifted.to(at::kFloat);
  at::Tensor sums;
  for (int64_t first = 0; first < x.size(-1); first += kExactInFloat) {
    const int64_t count = std::min(kExactInFloat, x.size(-1) - first);
    const at::Tensor some = weight.narrow(1, first, count).to(at::kFloat);
    const at::Tensor part = at::matmul(x.narrow(-1, first, count), some.t()).to(at::kDouble);
    sums = sums.defined() ? sums.add_(part) : part;
  }
  return sums.defined() ? sums : at::matmul(shifted.to(at::kDouble), weight.to(at::kDouble).t());
}

struct Window {
  at::IntArrayRef stride, padding, dilation;
  int64_t groups;

  at::Tensor convolve(const at::Tensor& x, const at::Tensor& weight) const {
    const std::vector<int64_t> no_output_padding(stride.size(), 0);
    return lissome::convolve(x, weight, std::nullopt, stride, padding, dilation, false, no_output_padding, groups);
  }
};

// The same of a convolution of `shifted`, f32: channels of each group are added in parts that are exact.
at::Tensor convolve_exactly(const at::Tensor& shifted, const at::Tensor& weight, const Window& window) {
  const int64_t channels = weight.size(1);
  const int64_t most = weight.numel() == 0 ? 0 : kExactInFloat / c10::multiply_integers(weight.sizes().slice(2));
  // A convolution in doubles may round in the last bits of what is a sum of integers.
  if (most == 0 || window.groups < 1) return window.convolve(shifted.to(at::kDouble), weight.to(at::kDouble)).round();
  const at::Tensor w = weight.to(at::kFloat);
  if (channels <= most) return window.convolve(shifted, w).to(at::kDouble);
  const int64_t dim = shifted.dim() - weight.dim() + 1;  // 0 without a batch
  const at::Tensor grouped = shifted.unflatten(dim, {window.groups, channels});
  at::Tensor sums;
  for (int64_t first = 0; first < channels; first += most) {
    const int64_t count = std::min(most, channels - first);
    const at::Tensor some = grouped.narrow(dim + 1, first, count).flatten(dim, dim + 1);
    const at::Tensor part = window.convolve(some, w.narrow(1, first, count)).to(at::kDouble);
    sums = sums.defined() ? sums.add_(part) : part;
  }
  return sums;
}

at::Tensor linear_int8(const at::Tensor& x, double x_scale, int64_t x_zero, const at::Tensor& weight,
                       const at::Tensor& weight_scales, const OptionalTensor& bias, std::string_view act,
                       const OptionalTensor& residual) {
  check_operands(x, weight, weight_scales, x_zero);
  const at::Tensor sums = multiply_exactly(x.to(at::kFloat).sub(static_cast<double>(x_zero)), weight);
  const at::Tensor multiplier = weight_scales.mul(static_cast<double>(static_cast<float>(x_scale)));
  return scale_sums(sums, multiplier, bias, sums.dim() - 1, act, residual);
}

at::Tensor linear_int8_u8(const at::Tensor& x, double x_scale, int64_t x_zero, const at::Tensor& weight,
                          const at::Tensor& weight_scales, const OptionalTensor& bias, std::string_view act,
                          const OptionalTensor& residual, double out_scale, int64_t out_zero) {
  return quantize(linear_int8(x, x_scale, x_zero, weight, weight_scales, bias, act, residual), out_scale, out_zero);
}

at::Tensor conv_int8(const at::Tensor& x, double x_scale, int64_t x_zero, const at::Tensor& weight,
                     const at::Tensor& weight_scales, const OptionalTensor& bias, at::IntArrayRef stride,
                     at::IntArrayRef padding, at::IntArrayRef dilation, int64_t groups, std::string_view act,
                     const OptionalTensor& residual, double residual_scale, int64_t residual_zero) {
  check_operands(x, weight, weight_scales, x_zero);
  const at::Tensor shifted = x.to(at::kFloat).sub(static_cast<double>(x_zero));
  const at::Tensor sums = convolve_exactly(shifted, weight, {stride, padding, dilation, groups});
  const int64_t channel_dim = sums.dim() - weight.dim() + 1;  // 0 without a batch
  const at::Tensor multiplier = weight_scales.mul(static_cast<double>(static_cast<float>(x_scale)));
  return scale_sums(sums, along(multiplier, sums.dim(), channel_dim), bias, channel_dim, act, residual,
                    {residual_scale, residual_zero});
}

at::Tensor conv_int8_u8(const at::Tensor& x, double x_scale, int64_t x_zero, const at::Tensor& weight,
                        const at::Tensor& weight_scales, const OptionalTensor& bias, at::IntArrayRef stride,
                        at::IntArrayRef padding, at::IntArrayRef dilation, int64_t groups, std::string_view act,
                        const OptionalTensor& residual, double out_scale, int64_t out_zero, double residual_scale,
                        int64_t residual_zero) {
  return quantize(conv_int8(x, x_scale, x_zero, weight, weight_scales, bias, stride, padding, dilation, groups, act,
                            residual, residual_scale, residual_zero),
                  out_scale, out_zero);
}

// Windows beside each other: as large as the stride, nothing padded.
at::Tensor conv_transposed_int8(const at::Tensor& x, double x_scale, int64_t x_zero, const at::Tensor& weight,
                                const at::Tensor& weight_scales, const OptionalTensor& bias, std::string_view act) {
  check_arguments(x.scalar_type() == at::kByte && weight.scalar_type() == at::kChar, "the int8 ops take u8 and s8");
  check_arguments(weight.dim() == 4 && weight_scales.dim() == 1 && weight_scales.size(0) == weight.size(1),
                  "there must be one weight scale an output channel");
  check_zero(x_zero);
  const at::IntArrayRef stride = weight.sizes().slice(2);
  const at::Tensor sums = at::convolution(x.to(at::kDouble).sub(static_cast<double>(x_zero)), weight.to(at::kDouble),
                                          std::nullopt, stride, {0, 0}, {1, 1}, true, {0, 0}, 1);
  const at::Tensor multiplier = weight_scales.mul(static_cast<double>(static_cast<float>(x_scale)));
  const int64_t channel_dim = sums.dim() - 3;
  return scale_sums(sums.round(), along(multiplier, sums.dim(), channel_dim), bias, channel_dim, act, std::nullopt);
}

at::Tensor conv_transposed_int8_u8(const at::Tensor& x, double x_scale, int64_t x_zero, const at::Tensor& weight,
                                   const at::Tensor& weight_scales, const OptionalTensor& bias, std::string_view act,
                                   double out_scale, int64_t out_zero) {
  return quantize(conv_transposed_int8(x, x_scale, x_zero, weight, weight_scales, bias, act), out_scale, out_zero);
}

// What bytes stand for, without their zero point, in f64, and their scales; NaN where a number is not finite.
struct Bytes {
  at::Tensor values, scales;
};
// Around zero, with one scale along `dim`.
Bytes quantize_evenly(const at::Tensor& x, int64_t dim) {
  const at::Tensor largest = at::amax(x.abs(), {dim}, true);
  at::Tensor scale = largest.div(127);
  scale = at::where(scale.lt(1e-30f), 1.0, scale).to(at::kFloat);
  const at::Tensor rounded = x.mul(scale.reciprocal()).round().to(at::kDouble);
  const at::Tensor known = largest.isfinite();
  return {at::where(known, rounded, 0.0),
          at::where(known, scale, std::numeric_limits<double>::quiet_NaN()).to(at::kFloat)};
}

// As linear_dynamic_int8 has them.
Bytes quantize_rows(const at::Tensor& x) {
  const at::Tensor low = at::amin(x, {-1}, true).clamp_max(0), high = at::amax(x, {-1}, true).clamp_min(0);
  const at::Tensor range = high.sub(low);
  at::Tensor scale = range.div(255);
  scale = at::where(scale.lt(1e-30f), 1.0, scale).to(at::kFloat);
  const at::Tensor inverse = scale.reciprocal(), zero = low.neg().mul(inverse).round().clamp(0, 255);
  const at::Tensor shifted = at::minimum(at::maximum(x.mul(inverse), zero.neg()), zero.neg().add(255)).round();
  return {at::where(range.isfinite(), shifted.to(at::kDouble), 0.0),
          at::where(range.isfinite(), scale, std::numeric_limits<double>::quiet_NaN()).to(at::kFloat)};
}

at::Tensor attention_int8(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const OptionalTensor& attn_mask, bool is_causal, double scale) {
  check_arguments(
      query.dim() == 4 && query.scalar_type() == at::kFloat && key.size(1) > 0 && query.size(1) % key.size(1) == 0,
      "attention_int8 takes f32 of 4 dimensions, heads that divide into key heads");
  const int64_t shared = query.size(1) / key.size(1);
  const Bytes q = quantize_rows(query), k = quantize_evenly(key.repeat_interleave(shared, 1), -1),
              v = quantize_evenly(value.repeat_interleave(shared, 1), -2);
  const at::Tensor multiplier = q.scales.mul(k.scales.transpose(-1, -2));
  at::Tensor scores = at::matmul(q.values, k.values.transpose(-1, -2)).to(at::kFloat).mul(multiplier);
  scores = scores.mul(static_cast<double>(static_cast<float>(scale)));
  const double hidden = -std::numeric_limits<double>::infinity();
  if (attn_mask && attn_mask->scalar_type() == at::kBool) {
    scores = scores.masked_fill(attn_mask->logical_not(), hidden);
  } else if (attn_mask) {
    scores = scores.add(*attn_mask);
  }
  if (is_causal) scores = scores.masked_fill(at::ones_like(scores, at::kBool).triu(1), hidden);
  const at::Tensor largest = at::amax(scores, {-1}, true);
  const at::Tensor shift = at::where(largest.eq(hidden), 0.0, largest);
  const at::Tensor weights = scores.to(at::kDouble).sub(shift).exp().mul(255).round();
  const at::Tensor total = weights.sum(-1, true).to(at::kFloat);
  const at::Tensor share = at::where(total.eq(0), 0.0, total.reciprocal()).to(at::kFloat);
  const at::Tensor sums = at::matmul(at::where(weights.isnan(), 0.0, weights), v.values);
  return sums.to(at::kFloat).mul(v.scales.mul(share));
}

}  // namespace

at::Tensor linear_dynamic_int8(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& weight_scales,
                               const OptionalTensor& bias, std::string_view act, const OptionalTensor& residual) {
  check_arguments(weight.scalar_type() == at::kChar, "the int8 ops take s8 weights");
  const Bytes rows = quantize_rows(x.to(at::kFloat));
  const at::Tensor sums = multiply_exactly(rows.values, weight);
  const at::Tensor known = rows.scales.mul(weight_scales);  // f32 times f32, [..., 1] x [out]
  const at::Tensor y = scale_sums(sums, known, bias, sums.dim() - 1, act, residual);
  return x.scalar_type() == at::kBFloat16 ? y.to(at::kBFloat16) : y;
}

namespace {

// [out, in] in f64.
at::Tensor spread_numbers(const at::Tensor& weight) {
  if (weight.scalar_type() == at::kChar) return weight.to(at::kDouble);
  check_arguments(weight.scalar_type() == at::kByte, "linear_group takes a weight of s8, or of 4 bits in u8");
  const at::Tensor pairs = weight.to(at::kInt), low = pairs.remainder(16), high = pairs.sub(low).div(16, "floor");
  const at::Tensor numbers = at::stack({low, high}, -1).reshape({weight.size(0), -1}).to(at::kDouble);
  return at::where(numbers.ge(8), numbers.sub(16), numbers);
}

at::Tensor linear_group(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scales,
                        const OptionalTensor& bias, std::string_view act, const OptionalTensor& residual) {
  check_arguments(weight.dim() == 2 && scales.dim() == 2 && scales.size(0) == weight.size(0) && x.dim() > 0,
                  "linear_group takes a matrix, and scales with one row an output");
  const at::Tensor numbers = spread_numbers(weight);
  const int64_t outputs = numbers.size(0), inputs = numbers.size(1), groups = scales.size(1);
  check_arguments(groups > 0 && inputs % groups == 0 && inputs == x.size(-1), "groups must divide the inputs of x");
  const Bytes rows = quantize_evenly(x.to(at::kFloat).reshape({-1, groups, inputs / groups}), -1);
  const at::Tensor sums = at::matmul(rows.values.transpose(0, 1),  // [groups, rows, size] x [groups, size, outputs]
                                     numbers.reshape({outputs, groups, inputs / groups}).permute({1, 2, 0}));
  const at::Tensor factors = rows.scales.transpose(0, 1).mul(scales.to(at::kFloat).t().unsqueeze(1));
  at::Tensor y = sums.mul(factors.to(at::kDouble)).sum(0).to(at::kFloat);
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = outputs;
  y = y.reshape(sizes);
  if (bias && bias->defined()) y = y.add(*bias);
  if (residual && residual->defined()) y = y.add(*residual);
  return apply_activation(act, y);
}

at::Tensor embedding_group(const at::Tensor& weight, const at::Tensor& scales, const at::Tensor& indices) {
  check_arguments(weight.dim() == 2 && scales.dim() == 2 && scales.size(0) == weight.size(0),
                  "embedding_group takes a matrix, and scales with one row a row of it");
  const at::Tensor numbers = spread_numbers(weight);
  const int64_t columns = numbers.size(1), groups = scales.size(1);
  check_arguments(groups > 0 && columns % groups == 0, "groups must divide the columns");
  const at::Tensor table = numbers.to(at::kFloat).reshape({-1, groups, columns / groups});
  return at::embedding(table.mul(scales.to(at::kFloat).unsqueeze(-1)).reshape({-1, columns}), indices);
}

}  // namespace

std::vector<OpRow> list_quantized_ops() {
  const std::string input = "(Tensor x, float x_scale, int x_zero, Tensor weight, Tensor weight_scales, Tensor? bias, ";
  const std::string conv = "SymInt[] stride, SymInt[] padding, SymInt[] dilation, SymInt groups, ";
  const std::string finish = "str act, Tensor? residual", range = ", float out_scale, int out_zero";
  const std::string narrow = ", float residual_scale=1., int residual_zero=0";
  return {
      {"quantize(Tensor x, float scale, int zero_point) -> Tensor", wrap_kernel(quantize)},
      {"dequantize(Tensor x, float scale, int zero_point) -> Tensor", wrap_kernel(dequantize)},
      {"linear_int8" + input + finish + ") -> Tensor", wrap_kernel(linear_int8)},
      {"linear_int8_u8" + input + finish + range + ") -> Tensor", wrap_kernel(linear_int8_u8)},
      {"conv_int8" + input + conv + finish + narrow + ") -> Tensor", wrap_kernel(conv_int8)},
      {"conv_int8_u8" + input + conv + finish + range + narrow + ") -> Tensor", wrap_kernel(conv_int8_u8)},
      {"conv_transposed_int8" + input + "str act) -> Tensor", wrap_kernel(conv_transposed_int8)},
      {"conv_transposed_int8_u8" + input + "str act" + range + ") -> Tensor", wrap_kernel(conv_transposed_int8_u8)},
      {"linear_dynamic_int8(Tensor x, Tensor weight, Tensor weight_scales, Tensor? bias, " + finish + ") -> Tensor",
       wrap_kernel(linear_dynamic_int8)},
      {"linear_group(Tensor x, Tensor weight, Tensor scales, Tensor? bias, " + finish + ") -> Tensor",
       wrap_kernel(linear_group)},
      {"embedding_group(Tensor weight, Tensor scales, Tensor indices) -> Tensor", wrap_kernel(embedding_group)},
      {"attention_int8(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, bool is_causal, float scale) -> "
       "Tensor",
       wrap_kernel(attention_int8)},
  };
}

}  // namespace lissome

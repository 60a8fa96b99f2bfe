// The ops of quantized models as torch.export writes them (PT2E: `quantized_decomposed::...`), under the same names in
// our namespace: PyTorch defines theirs in Python alone. Integers are plain tensors, scales and zero points stand
// beside them; what is computed is what PyTorch computes, f32 for f32.
//
//   quantize     clamp(round half to even(x * (1 / scale)) + zero, low, high) as `dtype`; per token the rounding comes
//                after the sum
//   dequantize   (q - zero) * scale
//
// per_tensor: one scale; per_channel: one along dimension `axis`; per_token: one a row of the last dimension;
// per_channel_group: one for each `group_size` neighbours in the last dimension of a matrix.
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <limits>
#include <tuple>

#include "lissome/base.h"
#include "lissome/program/op/check_arguments.h"
#include "lissome/program/op/register.h"

namespace lissome {
namespace {

using at::ScalarType;
using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using OptionalType = std::optional<ScalarType>;

void check_range(int64_t low, int64_t high, ScalarType dtype) {
  const auto fits = [&](int64_t lowest, int64_t highest) { return lowest <= low && low <= high && high <= highest; };
  const bool fitting = dtype == at::kByte     ? fits(0, 255)
                       : dtype == at::kChar   ? fits(-128, 127)
                       : dtype == at::kShort  ? fits(-32768, 32767)
                       : dtype == at::kUInt16 ? fits(0, 65535)
                       : dtype == at::kInt    ? fits(INT32_MIN, INT32_MAX)
                                              : dtype == at::kFloat8_e4m3fn || dtype == at::kFloat8_e5m2;
  check_arguments(fitting, "quantized values from ", low, " to ", high, " do not fit into ", at::toString(dtype));
}

Tensor widen(const Tensor& x) {
  const bool half = x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16;
  check_arguments(half || x.scalar_type() == at::kFloat, "quantize takes f32, f16 or bf16");
  return half ? x.to(at::kFloat) : x;
}

Tensor quantize_per_tensor(const Tensor& x, double scale, int64_t zero, int64_t low, int64_t high, ScalarType dtype) {
  check_range(low, high, dtype);
  return widen(x).mul(1.0 / scale).round().add(zero).clamp(low, high).to(dtype);
}

Tensor dequantize_per_tensor(const Tensor& q, double scale, int64_t zero, int64_t, int64_t, ScalarType,
                             OptionalType out_dtype) {
  return q.to(out_dtype.value_or(at::kFloat)).sub(zero).mul(scale);
}

double read_scale(const Tensor& scale) {
  check_arguments(scale.numel() == 1, "one scale is needed, not ", scale.numel());
  return scale.item().toDouble();
}

int64_t read_integer(const Tensor& number) {
  check_arguments(number.numel() == 1, "one number is needed, not ", number.numel());
  return number.item().toLong();
}

Tensor quantize_per_tensor_tensor(const Tensor& x, const Tensor& scale, const Tensor& zero, int64_t low, int64_t high,
                                  ScalarType dtype) {
  return quantize_per_tensor(x, read_scale(scale), read_integer(zero), low, high, dtype);
}

Tensor quantize_per_tensor_tensor2(const Tensor& x, const Tensor& scale, const Tensor& zero, const Tensor& low,
                                   const Tensor& high, ScalarType dtype) {
  return quantize_per_tensor(x, read_scale(scale), read_integer(zero), read_integer(low), read_integer(high), dtype);
}

Tensor dequantize_per_tensor_tensor(const Tensor& q, const Tensor& scale, const Tensor& zero, int64_t low, int64_t high,
                                    ScalarType dtype, OptionalType out_dtype) {
  return dequantize_per_tensor(q, read_scale(scale), read_integer(zero), low, high, dtype, out_dtype);
}

Tensor dequantize_per_tensor_tensor2(const Tensor& q, const Tensor& scale, const Tensor& zero, const Tensor& low,
                                     const Tensor& high, ScalarType dtype, OptionalType out_dtype) {
  return dequantize_per_tensor(q, read_scale(scale), read_integer(zero), read_integer(low), read_integer(high), dtype,
                               out_dtype);
}

// Per-channel numbers along dimension `axis` of `like`.
Tensor along(const Tensor& channels, const Tensor& like, int64_t axis) {
  check_arguments(axis >= 0 && axis < like.dim(), "axis ", axis, " of a tensor with ", like.dim(), " dimensions");
  std::vector<int64_t> sizes(static_cast<size_t>(like.dim()), 1);
  sizes[static_cast<size_t>(axis)] = channels.size(0);
  return channels.view(sizes);
}

Tensor quantize_per_channel(const Tensor& x, const Tensor& scales, const Tensor& zeros, int64_t axis, int64_t low,
                            int64_t high, ScalarType dtype) {
  check_range(low, high, dtype);
  const Tensor steps = widen(x).mul(along(scales, x, axis).reciprocal()).round();
  return steps.add(along(zeros, x, axis)).clamp(low, high).to(dtype);
}

Tensor dequantize_per_channel(const Tensor& q, const Tensor& scales, const OptionalTensor& zeros, int64_t axis, int64_t,
                              int64_t, ScalarType, OptionalType out_dtype) {
  const Tensor shifted = zeros && zeros->defined() ? q.sub(along(*zeros, q, axis)) : q;
  return shifted.mul(along(scales, q, axis)).to(out_dtype.value_or(at::kFloat));
}

Tensor fake_quant_per_channel(const Tensor& x, const Tensor& scales, const Tensor& zeros, int64_t axis, int64_t low,
                              int64_t high) {
  const Tensor scale = along(scales.to(at::kFloat), x, axis), zero = along(zeros.to(at::kInt), x, axis);
  return x.mul(scale.reciprocal()).round().add(zero).clamp(low, high).sub(zero).mul(scale);
}

using ScaleAndZero = std::tuple<Tensor, Tensor>;

// One scale and zero point for the whole tensor, which keep 0 exact.
ScaleAndZero choose_qparams(const Tensor& x, int64_t low, int64_t high, double eps, bool symmetric, ScalarType dtype) {
  check_arguments(INT32_MIN <= low && low < high && high <= INT32_MAX, "a range of quantized values from ", low, " to ",
                  high);
  const auto [smallest, largest] = at::aminmax(x);
  const Tensor bottom = smallest.clamp_max(0), top = largest.clamp_min(0);
  const Tensor least = at::zeros({1}, x.options().dtype(at::kFloat)).fill_(eps);
  const auto span = static_cast<double>(high - low);
  if (symmetric) {
    const Tensor scale = at::maximum(at::maximum(bottom.neg(), top).div(span / 2), least);
    const Tensor zero = at::zeros({1}, x.options().dtype(at::kLong)).fill_(dtype == at::kByte ? 128 : 0);
    return {scale.to(at::kDouble), zero};
  }
  const Tensor scale = at::maximum(top.sub(bottom).div(span), least);
  const Tensor zero = bottom.div(scale).round().to(at::kInt).neg().add(low).clamp(low, high);
  return {scale.to(at::kDouble), zero.to(at::kLong)};
}

ScaleAndZero choose_qparams_tensor(const Tensor& x, int64_t low, int64_t high, double eps, ScalarType dtype) {
  return choose_qparams(x, low, high, eps, false, dtype);
}

ScaleAndZero choose_qparams_symmetric(const Tensor& x, int64_t low, int64_t high, double eps, ScalarType dtype) {
  return choose_qparams(x, low, high, eps, true, dtype);
}

ScaleAndZero choose_qparams_per_token(const Tensor& x, ScalarType dtype) {
  check_arguments(dtype == at::kChar, "rows are quantized to s8 alone");
  Tensor scales = x.abs().amax({-1}, true);
  if (scales.scalar_type() == at::kHalf) scales = scales.to(at::kFloat);
  scales = scales.clamp_min(1e-5).div(127);
  return {scales, at::zeros_like(scales)};
}

// The zero point is rounded at the end of the range where that loses less.
ScaleAndZero choose_qparams_per_token_asymmetric(const Tensor& x, ScalarType) {
  constexpr int kLow = -128, kHigh = 127;
  const Tensor bottom = at::amin(x, {-1}, true).clamp_max(0), top = at::amax(x, {-1}, true).clamp_min(0);
  const Tensor scale = top.sub(bottom).div(kHigh - kLow).clamp_min(std::numeric_limits<float>::epsilon());
  const Tensor below = bottom.div(scale), above = top.div(scale);
  const Tensor nearer_low = below.add(kLow).add(above.add(kHigh)).gt(0);
  const Tensor zero = at::where(nearer_low, below.neg().add(kLow), above.neg().add(kHigh)).clamp(kLow, kHigh).round();
  return {scale.to(at::kDouble), zero.to(at::kLong)};
}

Tensor quantize_per_token(const Tensor& x, const Tensor& scales, const Tensor& zeros, int64_t low, int64_t high,
                          ScalarType dtype) {
  check_range(low, high, dtype);
  return x.mul(scales.reciprocal()).add(zeros).round().clamp(low, high).to(dtype);
}

Tensor dequantize_per_token(const Tensor& q, const Tensor& scales, const Tensor& zeros, int64_t, int64_t, ScalarType,
                            ScalarType output_dtype) {
  return q.sub(zeros).mul(scales).to(output_dtype);
}

// The matrix with one group a row.
Tensor group(const Tensor& matrix, const Tensor& scales, int64_t group_size) {
  check_arguments(matrix.dim() == 2, "groups are taken of matrices, this has ", matrix.dim(), " dimensions");
  const int64_t columns = matrix.size(1);
  if (group_size > columns && scales.size(-1) == 1) group_size = columns;
  check_arguments(group_size > 1 && columns % group_size == 0, columns, " columns are no whole number of groups of ",
                  group_size);
  return matrix.reshape({-1, group_size});
}

Tensor quantize_per_channel_group(const Tensor& x, const Tensor& scales, const Tensor& zeros, int64_t low, int64_t high,
                                  ScalarType dtype, int64_t group_size) {
  const Tensor steps = group(x, scales, group_size).mul(scales.reshape({-1, 1}).reciprocal());
  check_range(low, high, dtype);
  return steps.add(zeros.reshape({-1, 1})).round().clamp(low, high).to(dtype).reshape_as(x);
}

Tensor dequantize_per_channel_group(const Tensor& q, const Tensor& scales, const OptionalTensor& zeros, int64_t,
                                    int64_t, ScalarType, int64_t group_size, ScalarType output_dtype) {
  Tensor shifted = group(q, scales, group_size);
  if (zeros && zeros->defined()) shifted = shifted.sub(zeros->reshape({-1, 1}));
  return shifted.mul(scales.reshape({-1, 1})).reshape_as(q).to(output_dtype);
}

Tensor convert_element_type(const Tensor& x, ScalarType dtype) { return x.to(dtype, false, true); }

}  // namespace

std::vector<OpRow> list_decomposed_ops() {
  const std::string range = ", int quant_min, int quant_max, ScalarType dtype",
                    ranges = ", Tensor quant_min, Tensor quant_max, ScalarType dtype",
                    out = ", *, ScalarType? out_dtype=None) -> Tensor", pair = ") -> (Tensor, Tensor)",
                    number = "(Tensor input, float scale, int zero_point",
                    tensor = "(Tensor input, Tensor scale, Tensor zero_point",
                    many = "(Tensor input, Tensor scales, Tensor zero_points",
                    maybe = "(Tensor input, Tensor scales, Tensor? zero_points";
  const std::string choose = "(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype" + pair;
  return {
      {"quantize_per_tensor" + number + range + ") -> Tensor", wrap_kernel(quantize_per_tensor)},
      {"quantize_per_tensor.tensor" + tensor + range + ") -> Tensor", wrap_kernel(quantize_per_tensor_tensor)},
      {"quantize_per_tensor.tensor2" + tensor + ranges + ") -> Tensor", wrap_kernel(quantize_per_tensor_tensor2)},
      {"dequantize_per_tensor" + number + range + out, wrap_kernel(dequantize_per_tensor)},
      {"dequantize_per_tensor.tensor" + tensor + range + out, wrap_kernel(dequantize_per_tensor_tensor)},
      {"dequantize_per_tensor.tensor2" + tensor + ranges + out, wrap_kernel(dequantize_per_tensor_tensor2)},
      {"choose_qparams.tensor" + choose, wrap_kernel(choose_qparams_tensor)},
      {"choose_qparams_symmetric.tensor" + choose, wrap_kernel(choose_qparams_symmetric)},
      {"quantize_per_channel" + many + ", int axis" + range + ") -> Tensor", wrap_kernel(quantize_per_channel)},
      {"dequantize_per_channel" + maybe + ", int axis" + range + out, wrap_kernel(dequantize_per_channel)},
      {"fake_quant_per_channel" + many + ", int axis, int quant_min, int quant_max) -> Tensor",
       wrap_kernel(fake_quant_per_channel)},
      {"choose_qparams_per_token(Tensor input, ScalarType dtype" + pair, wrap_kernel(choose_qparams_per_token)},
      {"choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype" + pair,
       wrap_kernel(choose_qparams_per_token_asymmetric)},
      {"_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype" + pair,
       wrap_kernel(choose_qparams_per_token_asymmetric)},
      {"quantize_per_token" + many + range + ") -> Tensor", wrap_kernel(quantize_per_token)},
      {"dequantize_per_token" + many + range + ", ScalarType output_dtype) -> Tensor",
       wrap_kernel(dequantize_per_token)},
      {"quantize_per_channel_group" + many + range + ", int group_size) -> Tensor",
       wrap_kernel(quantize_per_channel_group)},
      {"dequantize_per_channel_group" + maybe + range + ", int group_size, ScalarType output_dtype) -> Tensor",
       wrap_kernel(dequantize_per_channel_group)},
      {"convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor", wrap_kernel(convert_element_type)},
  };
}

std::string find_decomposed_op(std::string_view name) {
  constexpr std::string_view kTheirs = "quantized_decomposed::";
  if (!name.starts_with(kTheirs)) return {};
  const std::string_view plain = name.substr(kTheirs.size());
  for (const OpRow& row : list_decomposed_ops()) {
    if (row.schema.starts_with(plain) && row.schema[plain.size()] == '(') return "lissome::" + std::string(plain);
  }
  return {};
}

}  // namespace lissome

// Checks of numbers that kernels turn into positions: scales of resampling, samples of fractional pools, dimensions and
// lengths of Fourier transforms.
#include <ATen/core/ivalue.h>
#include <ATen/ops/aminmax.h>

#include <array>
#include <cmath>
#include <set>

#include "lissome/program/check/check_values_rows.h"

namespace lissome {
namespace {

// A position is computed as (index + 0.5) / scale and cut to an integer: beyond these scales it leaves 64 bits.
void require_scale(double scale) {
  require_value(std::isfinite(scale) && scale >= 1e-6 && scale <= 1e6, "a scale is ", scale,
                ", allowed are 1e-6 to 1e6");
}

// Every number behind the output size is a scale of one dimension.
void check_scales(IValueSpan arguments) {
  for (const c10::IValue& argument : arguments.subspan(2)) {
    if (argument.isDouble()) require_scale(argument.toDouble());
  }
}

// (input, output_size, ..., scale_factors)
void check_scale_list(IValueSpan arguments) {
  const c10::IValue& scales = arguments.back();
  if (scales.isNone()) return;
  for (const double scale : scales.toDoubleVector()) require_scale(scale);
}

// (self, kernel_size, output_size, random_samples): where a window lies within its share, in 0..1.
void check_fractional_pool(IValueSpan arguments) {
  const at::Tensor& samples = arguments[3].toTensor();
  require_value(at::isFloatingType(samples.scalar_type()), "the samples must be floating-point numbers");
  if (samples.numel() == 0) return;
  const auto [smallest, largest] = at::aminmax(samples);
  const double low = smallest.item().toDouble(), high = largest.item().toDouble();
  require_value(low >= 0 && high <= 1, "the samples hold ", low >= 0 ? high : low, ", allowed are 0 to 1");
}

void require_dimensions(const at::Tensor& tensor, const std::vector<int64_t>& dimensions) {
  std::set<int64_t> seen;
  for (const int64_t dimension : dimensions) {
    const int64_t place = dimension < 0 ? dimension + tensor.dim() : dimension;
    require_value(place >= 0 && place < tensor.dim() && seen.insert(place).second, "dimension ", dimension,
                  " is out of range, or twice there, for ", print_sizes(tensor.sizes()));
    require_value(tensor.size(place) > 0, "a transform along a dimension of size 0");
  }
}

// (self, dim, normalization, ...)
void check_transform(IValueSpan arguments) {
  const at::Tensor& x = arguments[0].toTensor();
  require_dimensions(x, arguments[1].toIntVector());
  const int64_t normalization = arguments[2].toInt();
  require_value(normalization >= 0 && normalization <= 2, "a normalization ", normalization, ", allowed are 0 to 2");
}

void check_complex_transform(IValueSpan arguments) {
  check_transform(arguments);
  require_value(arguments[0].toTensor().is_complex(), "the input must be complex");
}

void check_real_transform(IValueSpan arguments) {
  check_transform(arguments);
  require_value(at::isFloatingType(arguments[0].toTensor().scalar_type()) && !arguments[1].toIntVector().empty(),
                "the input must be real, with a dimension to transform");
}

// (self, dim, normalization, last_dim_size)
void check_transform_to_real(IValueSpan arguments) {
  check_complex_transform(arguments);
  const auto dimensions = arguments[1].toIntVector();
  require_value(!dimensions.empty(), "there is no dimension to transform");
  const int64_t given = arguments[0].toTensor().size(dimensions.back()), size = arguments[3].toInt();
  require_value(size >= 1 && size / 2 + 1 == given, "a last dimension of ", size, " is made from ", size / 2 + 1,
                " numbers, not from ", given);
}

// (i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim)
void check_trilinear(IValueSpan arguments) {
  const int64_t rank = arguments[0].toTensor().dim() + static_cast<int64_t>(arguments[3].toIntVector().size());
  for (size_t i = 0; i < 4; ++i) {
    for (const int64_t dimension : arguments[i + 3].toIntVector()) {
      require_value(dimension >= 0 && dimension < rank, "dimension ", dimension, " of ", rank);
    }
    if (i == 3) continue;
    require_value(arguments[i].toTensor().dim() + static_cast<int64_t>(arguments[i + 3].toIntVector().size()) == rank,
                  "the operands do not expand to one number of dimensions");
  }
  const int64_t unrolled = arguments[7].toInt();
  require_value(unrolled >= 0 && unrolled < rank, "dimension ", unrolled, " of ", rank);
}

// (self, p): the distances of all pairs of rows.
void check_pair_distances(IValueSpan arguments) {
  const at::Tensor& rows = arguments[0].toTensor();
  require_value(rows.dim() == 2 && at::isFloatingType(rows.scalar_type()),
                "the rows are of [rows, columns] and floats, not ", print_sizes(rows.sizes()));
  require_value(arguments[1].toDouble() >= 0, "the norm is ", arguments[1].toDouble(), ", at least 0 is allowed");
}

// oneDNN's transposed convolutions fail (write through a null pointer) where outputs get no input at all: between
// windows further apart than 32 elements, and in bf16 between taps further apart than the whole input.
void check_transposed(const at::Tensor& x, const at::Tensor& weight, const c10::IValue& strides,
                      const c10::IValue& dilations) {
  constexpr int64_t kMostApart = 32, kMostBetweenTaps = 2;
  const std::vector<int64_t> stride = strides.toIntVector(), dilation = dilations.toIntVector();
  if (stride.empty() || dilation.empty() || x.dim() < 2 || weight.dim() < 3) return;
  const auto at = [](const std::vector<int64_t>& numbers, size_t i) {
    return numbers[std::min(i, numbers.size() - 1)];
  };
  const int64_t first = x.dim() - (weight.dim() - 2);
  for (int64_t i = 0; first >= 0 && i < weight.dim() - 2; ++i) {
    const int64_t apart = at(stride, static_cast<size_t>(i)), taps = at(dilation, static_cast<size_t>(i));
    const double window = static_cast<double>(taps) * static_cast<double>(weight.size(i + 2) - 1) + 1;
    const double reach = static_cast<double>(apart) * static_cast<double>(x.size(first + i) - 1) + 1;
    require_value(apart <= kMostApart || static_cast<double>(apart) <= window,
                  "a transposed convolution puts windows of ", window, " elements ", apart, " apart; up to ",
                  kMostApart, " are allowed where windows leave gaps");
    const bool is_half = x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf;
    require_value(!is_half || taps <= kMostBetweenTaps || static_cast<double>(taps) <= reach,
                  "a transposed convolution in bf16 has a dilation of ", taps, ", wider than its input");
  }
}

// (input, weight, bias, stride, padding, dilation, transposed, ...)
void check_convolution(IValueSpan arguments) {
  if (arguments[6].toBool())
    check_transposed(arguments[0].toTensor(), arguments[1].toTensor(), arguments[3], arguments[5]);
}

// (input, weight, bias, stride, padding, output_padding, groups, dilation)
void check_conv_transpose(IValueSpan arguments) {
  check_transposed(arguments[0].toTensor(), arguments[1].toTensor(), arguments[3], arguments[7]);
}

// Bytes other than 0 and 1 are no truth values: what counts them and what finds them would disagree.
void check_bool_view(IValueSpan arguments) {
  require_value(arguments[1].toScalarType() != at::kBool || arguments[0].toTensor().scalar_type() == at::kBool,
                "bytes are not taken for bool; compare them with 0");
}

}  // namespace

std::span<const ValueCheckRow> geometry_check_rows() {
  static constexpr std::array<ValueCheckRow, 42> kRows = {{
      {"lissome::conv_act", check_convolution},
      {"aten::convolution", check_convolution},
      {"aten::_convolution", check_convolution},
      {"aten::_convolution.deprecated", check_convolution},
      {"aten::conv_transpose1d", check_conv_transpose},
      {"aten::conv_transpose2d.input", check_conv_transpose},
      {"aten::conv_transpose3d.input", check_conv_transpose},
      {"aten::_pdist_forward", check_pair_distances},
      {"aten::view.dtype", check_bool_view},
      {"aten::view_copy.dtype", check_bool_view},
      {"aten::upsample_nearest1d", check_scales},
      {"aten::upsample_nearest2d", check_scales},
      {"aten::upsample_nearest3d", check_scales},
      {"aten::_upsample_nearest_exact1d", check_scales},
      {"aten::_upsample_nearest_exact2d", check_scales},
      {"aten::_upsample_nearest_exact3d", check_scales},
      {"aten::upsample_linear1d", check_scales},
      {"aten::upsample_bilinear2d", check_scales},
      {"aten::upsample_bicubic2d", check_scales},
      {"aten::upsample_trilinear3d", check_scales},
      {"aten::_upsample_bilinear2d_aa", check_scales},
      {"aten::_upsample_bicubic2d_aa", check_scales},
      {"aten::_upsample_lanczos2d_aa", check_scales},
      {"aten::upsample_nearest1d.vec", check_scale_list},
      {"aten::upsample_nearest2d.vec", check_scale_list},
      {"aten::upsample_nearest3d.vec", check_scale_list},
      {"aten::_upsample_nearest_exact1d.vec", check_scale_list},
      {"aten::_upsample_nearest_exact2d.vec", check_scale_list},
      {"aten::_upsample_nearest_exact3d.vec", check_scale_list},
      {"aten::upsample_linear1d.vec", check_scale_list},
      {"aten::upsample_bilinear2d.vec", check_scale_list},
      {"aten::upsample_bicubic2d.vec", check_scale_list},
      {"aten::upsample_trilinear3d.vec", check_scale_list},
      {"aten::_upsample_bilinear2d_aa.vec", check_scale_list},
      {"aten::_upsample_bicubic2d_aa.vec", check_scale_list},
      {"aten::_upsample_lanczos2d_aa.vec", check_scale_list},
      {"aten::fractional_max_pool2d", check_fractional_pool},
      {"aten::fractional_max_pool3d", check_fractional_pool},
      {"aten::_fft_c2r", check_transform_to_real},
      {"aten::_fft_c2c", check_complex_transform},
      {"aten::_fft_r2c", check_real_transform},
      {"aten::_trilinear", check_trilinear},
  }};
  return kRows;
}

}  // namespace lissome

// Checks of oneDNN's own ops, which lowering puts into reference steps: weights packed by one op, read by another. The
// kernels take sizes, dtypes and names of activations from the arguments and look at none of them.
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <array>

#include "lissome/program/check/check_values_rows.h"

namespace lissome {
namespace {

const at::Tensor& tensor_at(IValueSpan arguments, size_t position) { return arguments[position].toTensor(); }

// Activations that lowering writes: without scalars.
void require_activation(const c10::IValue& name, const c10::IValue& scalars, const c10::IValue& algorithm) {
  static constexpr std::array<std::string_view, 6> kNames = {"none", "relu", "gelu", "swish", "sigmoid", "tanh"};
  const std::string_view text = name.toStringView(), form = algorithm.isNone() ? "" : algorithm.toStringView();
  require_value(std::find(kNames.begin(), kNames.end(), text) != kNames.end(), "there is no activation '", text,
                "' here; there are none, relu, gelu, swish, sigmoid and tanh");
  require_value(scalars.toListRef().empty(), "an activation here takes no numbers");
  require_value(text == "gelu" ? form == "none" || form == "tanh" : form.empty(), "'", text, "' has no form '", form,
                "'");
}

bool is_float_dtype(at::ScalarType type) { return type == at::kFloat || type == at::kBFloat16; }

void require_bias(const c10::IValue& bias, int64_t count, std::span<const at::ScalarType> dtypes) {
  if (!is_present(bias)) return;
  const at::Tensor& tensor = bias.toTensor();
  require_value(tensor.layout() == at::kStrided && tensor.dim() == 1 && tensor.size(0) == count &&
                    std::find(dtypes.begin(), dtypes.end(), tensor.scalar_type()) != dtypes.end(),
                "the bias is ", print_sizes(tensor.sizes()), " for ", count, " outputs, or of another dtype");
}

void require_dense(std::string_view name, const at::Tensor& tensor, int64_t rank, bool is_at_least = false) {
  require_value(tensor.layout() == at::kStrided && (tensor.dim() == rank || (is_at_least && tensor.dim() > rank)), "'",
                name, "' must be a dense tensor of ", rank, " dimensions");
  require_value(std::all_of(tensor.sizes().begin(), tensor.sizes().end(), [](int64_t size) { return size > 0; }), "'",
                name, "' has no elements: ", print_sizes(tensor.sizes()));
}

void require_packed_weight(const at::Tensor& weight, at::ScalarType dtype) {
  require_value(weight.layout() == at::kMkldnn && weight.scalar_type() == dtype,
                "the weight is not one that was packed for this op, of the input's dtype");
}

// ---- linear --------------------------------------------------------------------------------------------------------
// Rows of x times a packed weight [out, in]; returns the sizes of the result.
std::vector<int64_t> check_linear_operands(const at::Tensor& x, const at::Tensor& weight, const c10::IValue& bias) {
  require_dense("X", x, 2, true);
  require_value(is_float_dtype(x.scalar_type()), "the input must be f32 or bf16");
  require_packed_weight(weight, x.scalar_type());
  require_value(weight.dim() == 2 && weight.size(1) == x.size(-1), "the weight is ", print_sizes(weight.sizes()),
                " for inputs ", print_sizes(x.sizes()));
  const std::array dtypes = {x.scalar_type()};
  require_bias(bias, weight.size(0), dtypes);
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  return sizes;
}

void require_other(const at::Tensor& other, at::ScalarType dtype, const std::vector<int64_t>& sizes) {
  require_dense("other", other, static_cast<int64_t>(sizes.size()));
  require_value(other.scalar_type() == dtype && other.sizes() == at::IntArrayRef(sizes), "'other' is ",
                print_sizes(other.sizes()), ", the result ", print_sizes(sizes));
}

// (X, W, B, attr, scalars, algorithm)
void check_linear_pointwise(IValueSpan arguments) {
  check_linear_operands(tensor_at(arguments, 0), tensor_at(arguments, 1), arguments[2]);
  require_activation(arguments[3], arguments[4], arguments[5]);
}

// (X, other, W, B, attr)
void check_linear_binary(IValueSpan arguments) {
  const auto sizes = check_linear_operands(tensor_at(arguments, 0), tensor_at(arguments, 2), arguments[3]);
  require_other(tensor_at(arguments, 1), tensor_at(arguments, 0).scalar_type(), sizes);
  require_value(arguments[4].toStringView() == "add", "'", arguments[4].toStringView(), "' is not 'add'");
}

// (self, batch_size)
void check_linear_packing(IValueSpan arguments) {
  require_dense("self", tensor_at(arguments, 0), 2);
  require_value(is_float_dtype(tensor_at(arguments, 0).scalar_type()) && arguments[1].isNone(),
                "a weight of f32 or bf16 is packed here, for any batch");
}

// ---- convolution ---------------------------------------------------------------------------------------------------
struct Geometry {
  std::vector<int64_t> padding, stride, dilation;
  int64_t groups = 1;
};

void require_geometry(const Geometry& geometry) {
  constexpr int64_t kMost = 1 << 16;
  const auto within = [](const std::vector<int64_t>& numbers, int64_t low) {
    return (numbers.size() == 1 || numbers.size() == 2) &&
           std::all_of(numbers.begin(), numbers.end(), [low](int64_t n) { return n >= low && n <= kMost; });
  };
  require_value(within(geometry.padding, 0) && within(geometry.stride, 1) && within(geometry.dilation, 1) &&
                    geometry.groups >= 1 && geometry.groups <= kMost,
                "padding, stride, dilation and groups must be numbers for two dimensions, up to ", kMost);
}

// A packed weight of a grouped convolution may carry the groups as a dimension of its own.
struct WindowSizes {
  int64_t outputs = 0, inputs = 0, height = 0, width = 0;
};

WindowSizes read_window(const at::Tensor& weight, int64_t groups) {
  require_value(weight.dim() == 4 || (weight.dim() == 5 && weight.size(0) == groups), "the weight is ",
                print_sizes(weight.sizes()), " for ", groups, " groups");
  const int64_t shift = weight.dim() - 4;
  const int64_t outputs = weight.size(shift) * (shift == 1 ? groups : 1);
  require_value(outputs % groups == 0, outputs, " channels do not make ", groups, " groups");
  return {outputs, weight.size(1 + shift) * groups, weight.size(2 + shift), weight.size(3 + shift)};
}

// Returns the sizes of the result.
std::vector<int64_t> check_conv_operands(const at::Tensor& x, const at::Tensor& weight, const Geometry& geometry) {
  require_geometry(geometry);
  require_dense("the input", x, 4);
  const WindowSizes window = read_window(weight, geometry.groups);
  require_value(window.inputs == x.size(1), "the weight is ", print_sizes(weight.sizes()), " for inputs ",
                print_sizes(x.sizes()));
  const auto size_after = [&](size_t axis, int64_t input, int64_t kernel) {
    const auto at = [axis](const std::vector<int64_t>& numbers) { return numbers[numbers.size() == 1 ? 0 : axis]; };
    const int64_t span = at(geometry.dilation) * (kernel - 1) + 1, padded = input + 2 * at(geometry.padding);
    require_value(kernel > 0 && span <= padded, "a window of ", span, " over ", padded, " places");
    return (padded - span) / at(geometry.stride) + 1;
  };
  return {x.size(0), window.outputs, size_after(0, x.size(2), window.height), size_after(1, x.size(3), window.width)};
}

Geometry read_geometry(IValueSpan arguments, size_t padding, size_t stride) {
  return {arguments[padding].toIntVector(), arguments[stride].toIntVector(),
          arguments[std::max(padding, stride) + 1].toIntVector(), arguments[std::max(padding, stride) + 2].toInt()};
}

// (X, W, B, padding, stride, dilation, groups, attr, scalars, algorithm)
void check_conv_pointwise(IValueSpan arguments) {
  const at::Tensor& x = tensor_at(arguments, 0);
  const auto sizes = check_conv_operands(x, tensor_at(arguments, 1), read_geometry(arguments, 3, 4));
  require_value(is_float_dtype(x.scalar_type()), "the input must be f32 or bf16");
  require_packed_weight(tensor_at(arguments, 1), x.scalar_type());
  const std::array dtypes = {x.scalar_type()};
  require_bias(arguments[2], sizes[1], dtypes);
  require_activation(arguments[7], arguments[8], arguments[9]);
}

// (X, other, W, B, padding, stride, dilation, groups, binary_attr, alpha, unary_attr, unary_scalars, unary_algorithm)
void check_conv_binary(IValueSpan arguments) {
  const at::Tensor& x = tensor_at(arguments, 0);
  const auto sizes = check_conv_operands(x, tensor_at(arguments, 2), read_geometry(arguments, 4, 5));
  require_value(is_float_dtype(x.scalar_type()), "the input must be f32 or bf16");
  require_packed_weight(tensor_at(arguments, 2), x.scalar_type());
  const std::array dtypes = {x.scalar_type()};
  require_bias(arguments[3], sizes[1], dtypes);
  require_other(tensor_at(arguments, 1), x.scalar_type(), sizes);
  require_value(arguments[8].toStringView() == "add" &&
                    (arguments[9].isNone() || (arguments[9].isDouble() && arguments[9].toDouble() == 1)),
                "'other' is added, with the factor 1");
  require_value(arguments[10].isNone() || arguments[10].toStringView() == "relu", "relu or nothing follows the sum");
  require_value(arguments[11].toListRef().empty() && arguments[12].isNone(), "relu takes no numbers");
}

// (self, padding, stride, dilation, groups, input_size)
void check_conv_packing(IValueSpan arguments) {
  const at::Tensor& weight = tensor_at(arguments, 0);
  const Geometry geometry = read_geometry(arguments, 1, 2);
  require_geometry(geometry);
  require_dense("self", weight, 4);
  read_window(weight, geometry.groups);
  require_value(is_float_dtype(weight.scalar_type()) && arguments[5].isNone(),
                "a weight of f32 or bf16 is packed here, for any input");
}

// ---- int8 ----------------------------------------------------------------------------------------------------------
void require_channel_numbers(std::string_view name, const at::Tensor& tensor, int64_t channels, at::ScalarType first,
                             at::ScalarType second) {
  require_value(tensor.layout() == at::kStrided && tensor.is_contiguous() && tensor.numel() == channels &&
                    (tensor.scalar_type() == first || tensor.scalar_type() == second),
                "'", name, "' is ", print_sizes(tensor.sizes()), " for ", channels, " channels, or of another dtype");
}

// Scale, zero point and dtype of the result stand at `first`.
void require_result_scale(IValueSpan arguments, size_t first) {
  const int64_t zero = arguments[first + 1].toInt();
  const auto dtype = arguments[first + 2].isNone() ? at::kByte : arguments[first + 2].toScalarType();
  require_value(
      arguments[first].toDouble() > 0 && zero >= 0 && zero <= 255 && (dtype == at::kByte || dtype == at::kFloat),
      "the result is u8 with a scale above 0 and a zero point of 0 to 255, or f32");
}

void require_quantized_input(const at::Tensor& x, const c10::IValue& scale, const c10::IValue& zero) {
  require_value(x.scalar_type() == at::kByte && scale.toDouble() > 0 && zero.toInt() >= 0 && zero.toInt() <= 255,
                "the input is u8 with a scale above 0 and a zero point of 0 to 255");
}

// (weight, x_shape)
void check_linear_int8_packing(IValueSpan arguments) {
  require_dense("weight", tensor_at(arguments, 0), 2);
  require_value(tensor_at(arguments, 0).scalar_type() == at::kChar && arguments[1].isNone(),
                "a weight of s8 is packed here, for any input");
}

// (qx, x_scale, x_zero_point, qw, w_scale, w_zero_point, bias, output_scale, output_zero_point, output_dtype, name,
// arguments, algorithm). A packed weight is [in, out].
void check_linear_int8(IValueSpan arguments) {
  const at::Tensor &x = tensor_at(arguments, 0), &weight = tensor_at(arguments, 3);
  require_dense("qx", x, 2, true);
  require_quantized_input(x, arguments[1], arguments[2]);
  require_packed_weight(weight, at::kChar);
  require_value(weight.dim() == 2 && weight.size(0) == x.size(-1), "the packed weight is ", print_sizes(weight.sizes()),
                " for inputs ", print_sizes(x.sizes()));
  require_channel_numbers("w_scale", tensor_at(arguments, 4), weight.size(1), at::kFloat, at::kFloat);
  require_channel_numbers("w_zero_point", tensor_at(arguments, 5), weight.size(1), at::kLong, at::kInt);
  static constexpr std::array kBias = {at::kFloat};
  require_bias(arguments[6], weight.size(1), kBias);
  require_result_scale(arguments, 7);
  require_activation(arguments[10], arguments[11], arguments[12]);
}

// (weight, w_scales, x_scale, x_zp, stride, padding, dilation, groups, x_shape)
void check_conv_int8_packing(IValueSpan arguments) {
  const at::Tensor& weight = tensor_at(arguments, 0);
  const Geometry geometry = read_geometry(arguments, 5, 4);
  require_geometry(geometry);
  require_dense("weight", weight, 4);
  read_window(weight, geometry.groups);
  require_value(weight.scalar_type() == at::kChar && arguments[8].isNone(),
                "a weight of s8 is packed here, for any input");
  require_channel_numbers("w_scales", tensor_at(arguments, 1), weight.size(0), at::kFloat, at::kFloat);
  require_value(arguments[2].toDouble() > 0 && arguments[3].toInt() >= 0 && arguments[3].toInt() <= 255,
                "the input has a scale above 0 and a zero point of 0 to 255");
}

// (qx, x_scale, x_zero_point, qw, w_scale, w_zero_point, bias, stride, padding, dilation, groups, output_scale,
// output_zero_point, output_dtype, attr, scalars, algorithm)
void check_conv_int8(IValueSpan arguments) {
  const at::Tensor &x = tensor_at(arguments, 0), &weight = tensor_at(arguments, 3);
  require_quantized_input(x, arguments[1], arguments[2]);
  const auto sizes = check_conv_operands(x, weight, read_geometry(arguments, 8, 7));
  require_packed_weight(weight, at::kChar);
  require_channel_numbers("w_scale", tensor_at(arguments, 4), sizes[1], at::kFloat, at::kFloat);
  require_channel_numbers("w_zero_point", tensor_at(arguments, 5), sizes[1], at::kLong, at::kInt);
  static constexpr std::array kBias = {at::kFloat};
  require_bias(arguments[6], sizes[1], kBias);
  require_result_scale(arguments, 11);
  require_activation(arguments[14], arguments[15], arguments[16]);
}

}  // namespace

std::span<const ValueCheckRow> onednn_check_rows() {
  static constexpr std::array<ValueCheckRow, 10> kRows = {{
      {"mkldnn::_linear_pointwise", check_linear_pointwise},
      {"mkldnn::_linear_pointwise.binary", check_linear_binary},
      {"mkldnn::_reorder_linear_weight", check_linear_packing},
      {"mkldnn::_convolution_pointwise", check_conv_pointwise},
      {"mkldnn::_convolution_pointwise.binary", check_conv_binary},
      {"mkldnn::_reorder_convolution_weight", check_conv_packing},
      {"onednn::qlinear_prepack", check_linear_int8_packing},
      {"onednn::qlinear_pointwise", check_linear_int8},
      {"onednn::qconv_prepack", check_conv_int8_packing},
      {"onednn::qconv_pointwise", check_conv_int8},
  }};
  return kRows;
}

}  // namespace lissome

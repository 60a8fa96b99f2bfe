// The int8 ops on our own kernels: linears and convolutions over u8 activations, linears that quantize rows of f32 as
// they come, and the steps between f32 and u8. The kernels compute what program/op/quantized.cpp says, bit for bit but
// for activations.
#include <charconv>

#include "lissome/lower/candidate/conv/conv_candidates.h"
#include "lissome/lower/candidate/elementwise/elementwise_candidates.h"
#include "lissome/lower/candidate/gemm/gemm_candidates.h"
#include "lissome/lower/candidate/geometry.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/lower/tensors.h"
#include "lissome/runtime/step/conv/conv_u8s8_steps.h"
#include "lissome/runtime/step/depthwise/depthwise_u8s8_steps.h"
#include "lissome/runtime/step/elementwise/elementwise_steps.h"
#include "lissome/runtime/step/gemm/linear_u8s8_steps.h"
#include "lissome/runtime/step/winograd/winograd_u8s8_steps.h"

namespace lissome {
namespace {

bool gives_u8(const Node& node) { return node.op.name().ends_with("_u8"); }

bool has_u8_residual(const PlanBuilder& builder, const Node& node) {
  if (node.op.argument_index("residual_scale") < 0) return false;
  const Argument& residual = node.argument("residual");
  return residual.is_value() && builder.type(residual.value()).dtype == Dtype::u8;
}

std::string refuse_added(const PlanBuilder& builder, const Node& node, Dtype x_dtype) {
  if (node.op.argument_index("residual") < 0 || node.argument("residual").is_none()) return {};
  const Argument& residual = node.argument("residual");
  if (!has_u8_residual(builder, node)) {
    if (x_dtype != Dtype::bf16) return refuse_residual(builder, node, residual);
    if (builder.type(residual.value()).dtype == Dtype::f32) return refuse_residual(builder, node, residual);
  }
  if (builder.type(residual.value()).sizes != builder.type(node.result()).sizes) return "the residual is broadcast";
  if (!has_u8_residual(builder, node)) return refuse_tensor(builder, residual, Dtype::bf16);
  return first_refusal({refuse_tensor(builder, residual, Dtype::u8),
                        refuse_number(node.argument("residual_scale"), "residual_scale"),
                        refuse_number(node.argument("residual_zero"), "residual_zero")});
}

std::string refuse_layer(const PlanBuilder& builder, const Node& node, Dtype x_dtype) {
  const Argument& scales = node.argument("weight_scales");
  const std::string refusal =
      first_refusal({refuse_activation(node.argument("act")), refuse_tensor(builder, node.argument("x"), x_dtype),
                     refuse_weight(builder, scales, Dtype::f32, 1),
                     refuse_optional(builder, node.argument("bias"), Dtype::f32), refuse_added(builder, node, x_dtype),
                     refuse_tensor(builder, Argument(node.result()),
                                   gives_u8(node)           ? Dtype::u8
                                   : x_dtype == Dtype::bf16 ? Dtype::bf16
                                                            : Dtype::f32)});
  if (!refusal.empty()) return refusal;
  if (builder.type(node.argument("x").value()).sizes.empty()) return "x has no dimensions";
  if (x_dtype != Dtype::u8) return {};
  return first_refusal(
      {refuse_number(node.argument("x_scale"), "x_scale"), refuse_number(node.argument("x_zero"), "x_zero")});
}

const std::string& constant_name(const PlanBuilder& builder, const Node& node, std::string_view argument) {
  return builder.program().find_weight(node.argument(argument).value())->name;
}

const std::string& weight_name(const PlanBuilder& builder, const Node& node) {
  return constant_name(builder, node, "weight");
}

std::string format_number(double number) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), number).ptr);
}

struct PackedInt8 {
  PlanValueId weight, sums;
};

// `weight` is [outputs, inputs / groups, taps...]; one block a group.
PackedInt8 pack_weight(PlanBuilder& builder, const Node& node, int64_t groups, RunsU8S8 runs) {
  const std::string name =
      weight_name(builder, node) + ".u8s8." + std::to_string(groups) + "." + std::to_string(runs.taps_per_run);
  const std::string sums_name = name + ".sums";
  if (!builder.has_packed(name)) {
    const Array weight = share_tensor(*builder.constant(node.argument("weight").value()));
    const int64_t outputs = weight.sizes[0] / groups, inputs = weight.sizes[1];
    const int64_t block = packed_u8s8_size(outputs, inputs, runs);
    Array packed = make_array(Dtype::i8, {groups * block});
    Array sums = make_array(Dtype::i32, {weight.sizes[0]});
    for (int64_t g = 0; g < groups; ++g) {
      pack_u8s8(weight.data<int8_t>() + g * outputs * inputs * runs.taps, outputs, inputs, runs,
                packed.data<int8_t>() + g * block, sums.data<int32_t>() + g * outputs);
    }
    builder.add_packed(name, std::move(packed));
    builder.add_packed(sums_name, std::move(sums));
  }
  return {builder.find_packed(name), builder.find_packed(sums_name)};
}

// weight_scales * x_scale in f32.
PlanValueId add_multiplier(PlanBuilder& builder, const Node& node, float x_scale) {
  const std::string name =
      constant_name(builder, node, "weight_scales") + ".multiplier." + format_number(static_cast<double>(x_scale));
  if (builder.has_packed(name)) return builder.find_packed(name);
  const Array scales = share_tensor(*builder.constant(node.argument("weight_scales").value()));
  Array multiplier = make_array(Dtype::f32, scales.sizes);
  for (int64_t i = 0; i < scales.elements(); ++i) multiplier.data<float>()[i] = scales.data<float>()[i] * x_scale;
  return builder.add_packed(name, std::move(multiplier));
}

int64_t read_zero_point(const Node& node, std::string_view name) {
  return static_cast<int64_t>(read_number(node.argument(name)));
}

template <typename Step>
void set_result(Step& step, const Node& node) {
  step.activation = translate_activation(*node.argument("act").get<std::string>());
  if (!gives_u8(node)) return;
  step.quantized.out_inverse = 1.0f / static_cast<float>(read_number(node.argument("out_scale")));
  step.quantized.out_zero = read_zero_point(node, "out_zero");
}

}  // namespace

std::string refuse_linear_u8s8(const PlanBuilder& builder, const Node& node) {
  return first_refusal(
      {refuse_weight(builder, node.argument("weight"), Dtype::i8, 2), refuse_layer(builder, node, Dtype::u8)});
}

void emit_linear_u8s8(PlanBuilder& builder, const Node& node) {
  const PackedInt8 packed = pack_weight(builder, node, 1, {});
  LinearU8S8Step step;
  step.outputs = builder.constant(node.argument("weight").value())->size(0);
  step.quantized.x_zero = read_zero_point(node, "x_zero");
  set_result(step, node);
  step.x = {builder.use_dense(node.argument("x"), node)};
  step.weight = {packed.weight};
  step.multiplier = {add_multiplier(builder, node, static_cast<float>(read_number(node.argument("x_scale"))))};
  step.weight_sums = {packed.sums};
  step.bias = {builder.use(node.argument("bias"))};
  step.residual = {builder.use_dense(node.argument("residual"), node)};
  step.y = {builder.make(node.result())};
  builder.add_step(step, node);
}

// Rows of f32 give f32, rows of bf16 give bf16; a residual is of the same kind.
std::string refuse_linear_dynamic(const PlanBuilder& builder, const Node& node) {
  const Argument& x = node.argument("x");
  const bool narrow = x.is_value() && builder.type(x.value()).dtype == Dtype::bf16;
  return first_refusal({refuse_weight(builder, node.argument("weight"), Dtype::i8, 2),
                        refuse_layer(builder, node, narrow ? Dtype::bf16 : Dtype::f32)});
}

void emit_linear_dynamic(PlanBuilder& builder, const Node& node) {
  const ValueId x = node.argument("x").value();
  const PackedInt8 packed = pack_weight(builder, node, 1, {});
  const QuantizedRows rows = builder.quantize_rows(x, node);
  LinearU8S8Step step;
  step.outputs = builder.constant(node.argument("weight").value())->size(0);
  set_result(step, node);
  step.x = {rows.bytes};
  step.weight = {packed.weight};
  step.multiplier = {builder.use(node.argument("weight_scales"))};
  step.weight_sums = {packed.sums};
  step.bias = {builder.use(node.argument("bias"))};
  step.residual = {builder.use_dense(node.argument("residual"), node)};
  step.row_scales = {rows.scales};
  step.row_zeros = {rows.zeros};
  step.y = {builder.make(node.result())};
  builder.add_step(step, node);
}

std::string refuse_conv_u8s8(const PlanBuilder& builder, const Node& node) {
  const Argument& weight = node.argument("weight");
  const at::Tensor* tensor = weight.is_value() ? builder.constant(weight.value()) : nullptr;
  if (!tensor) return "the weight is computed";
  if (tensor->dim() != 3 && tensor->dim() != 4) return "it has neither one nor two spatial dimensions";
  if (tensor->scalar_type() != at::kChar) return "the weight is not i8";
  const std::string refusal = refuse_layer(builder, node, Dtype::u8);
  if (!refusal.empty()) return refusal;
  if (builder.type(node.argument("x").value()).sizes.size() != static_cast<size_t>(tensor->dim()))
    return "x has no batch";
  return refuse_geometry(node);
}

namespace {

// What packing needs to know of a window.
Window read_window(const Node& node, const at::Tensor& weight) {
  Window window;
  window.kernel_height = weight.dim() == 4 ? weight.size(2) : 1, window.kernel_width = weight.size(weight.dim() - 1);
  window.dilation_width = read_integers(node.argument("dilation"))->back();
  window.stride_width = read_integers(node.argument("stride"))->back();
  return window;
}

// A weight in a form of its own, packed once; `pack` fills it and the sums of each channel.
template <typename Function>
PackedInt8 pack_as(PlanBuilder& builder, const Node& node, std::string_view form, int64_t bytes, const Function& pack) {
  const std::string name = weight_name(builder, node) + "." + std::string(form), sums_name = name + ".sums";
  if (!builder.has_packed(name)) {
    const Array weight = share_tensor(*builder.constant(node.argument("weight").value()));
    Array packed = make_array(Dtype::i8, {bytes});
    Array sums = make_array(Dtype::i32, {weight.sizes[0]});
    pack(weight.data<int8_t>(), packed.data<int8_t>(), sums.data<int32_t>());
    builder.add_packed(name, std::move(packed));
    builder.add_packed(sums_name, std::move(sums));
  }
  return {builder.find_packed(name), builder.find_packed(sums_name)};
}

PackedInt8 pack_depthwise(PlanBuilder& builder, const Node& node, const at::Tensor& weight, const Window& window) {
  const int64_t channels = weight.size(0);
  return pack_as(builder, node, "depthwise_u8s8", packed_depthwise_u8s8_size(channels, window),
                 [&](const int8_t* from, int8_t* packed, int32_t* sums) {
                   pack_depthwise_u8s8(from, channels, window, packed, sums);
                 });
}

PackedInt8 pack_grouped(PlanBuilder& builder, const Node& node, const at::Tensor& weight, const Window& window) {
  const int64_t channels = weight.size(0), group = weight.size(1);
  return pack_as(builder, node, "grouped_u8s8", packed_grouped_u8s8_size(channels, group, window),
                 [&](const int8_t* from, int8_t* packed, int32_t* sums) {
                   pack_grouped_u8s8(from, channels, group, window, packed, sums);
                 });
}

PlanValueId pack_border(PlanBuilder& builder, int64_t channels, int64_t zero) {
  const std::string name = "border." + std::to_string(channels) + "." + std::to_string(zero);
  if (builder.has_packed(name)) return builder.find_packed(name);
  Array border = make_array(Dtype::u8, {channels});
  std::fill_n(border.data<uint8_t>(), channels, static_cast<uint8_t>(zero));
  return builder.add_packed(name, std::move(border));
}

PackedInt8 pack_winograd(PlanBuilder& builder, const Node& node) {
  const std::string name = weight_name(builder, node) + ".winograd_u8s8", sums_name = name + ".sums";
  if (!builder.has_packed(name)) {
    const Array weight = share_tensor(*builder.constant(node.argument("weight").value()));
    const int64_t outputs = weight.sizes[0], inputs = weight.sizes[1];
    Array packed = make_array(Dtype::i16, {packed_winograd_u8s8_size(outputs, inputs)});
    Array sums = make_array(Dtype::i32, {outputs});
    pack_winograd_u8s8(weight.data<int8_t>(), outputs, inputs, packed.data<int16_t>(), sums.data<int32_t>());
    builder.add_packed(name, std::move(packed));
    builder.add_packed(sums_name, std::move(sums));
  }
  return {builder.find_packed(name), builder.find_packed(sums_name)};
}

template <typename Step>
void emit_conv_step(PlanBuilder& builder, const Node& node, PackedInt8 packed) {
  const at::Tensor& weight = *builder.constant(node.argument("weight").value());
  Step step;
  step.window = read_window_fields(node, weight);
  step.quantized.x_zero = read_zero_point(node, "x_zero");
  if (has_u8_residual(builder, node)) {
    step.quantized.residual_scale = read_number(node.argument("residual_scale"));
    step.quantized.residual_zero = read_zero_point(node, "residual_zero");
  }
  set_result(step, node);
  step.x = {builder.use_dense(node.argument("x"), node, Format::channels_last)};
  step.weight = {packed.weight};
  step.multiplier = {add_multiplier(builder, node, static_cast<float>(read_number(node.argument("x_scale"))))};
  step.weight_sums = {packed.sums};
  step.bias = {builder.use(node.argument("bias"))};
  step.residual = {builder.use_dense(node.argument("residual"), node, Format::channels_last)};
  if constexpr (std::is_base_of_v<BorderedConvU8S8Values, Step>) {
    step.border = {pack_border(builder, weight.size(1) * step.window.groups, step.quantized.x_zero)};
  }
  step.y = {builder.make(node.result(), Storage::arena, Format::channels_last)};
  builder.add_step(step, node);
}

}  // namespace

void emit_conv_u8s8(PlanBuilder& builder, const Node& node) {
  const int64_t groups = *node.argument("groups").get<int64_t>();
  const at::Tensor& weight = *builder.constant(node.argument("weight").value());
  const Window window = read_window(node, weight);
  if (is_depthwise(node, weight) && takes_depthwise_u8s8(window)) {
    emit_conv_step<DepthwiseU8S8Step>(builder, node, pack_depthwise(builder, node, weight, window));
  } else if (groups > 1 && takes_grouped_u8s8(weight.size(1), weight.size(0) / groups, window)) {
    emit_conv_step<GroupedU8S8Step>(builder, node, pack_grouped(builder, node, weight, window));
  } else {
    emit_conv_step<ConvU8S8Step>(builder, node, pack_weight(builder, node, groups, choose_runs(window, groups)));
  }
}

std::string refuse_winograd_u8s8(const PlanBuilder& builder, const Node& node) {
  const std::string refusal = refuse_conv_u8s8(builder, node);
  if (!refusal.empty()) return refusal;
  const std::string form = refuse_winograd_form(builder, node);
  if (!form.empty()) return form;
  const at::Tensor& weight = *builder.constant(node.argument("weight").value());
  if (weight.size(0) % kWinogradBytes != 0 || weight.size(1) % kWinogradBytes != 0)
    return "channels are no multiples of 32";
  const Array numbers = share_tensor(weight);
  return fits_winograd_u8s8(numbers.data<int8_t>(), weight.size(0), weight.size(1)) ? ""
                                                                                    : "its sums would not fit 26 bits";
}

void emit_winograd_u8s8(PlanBuilder& builder, const Node& node) {
  emit_conv_step<WinogradU8S8Step>(builder, node, pack_winograd(builder, node));
}

std::string refuse_conv_transposed_u8s8(const PlanBuilder& builder, const Node& node) {
  const std::string refusal = first_refusal(
      {refuse_weight(builder, node.argument("weight"), Dtype::i8, 4),
       node.argument("bias").is_none() ? std::string() : refuse_weight(builder, node.argument("bias"), Dtype::f32, 1),
       refuse_layer(builder, node, Dtype::u8)});
  if (!refusal.empty()) return refusal;
  if (builder.type(node.argument("x").value()).sizes.size() != 4) return "x has no batch";
  const at::Tensor& weight = *builder.constant(node.argument("weight").value());
  return weight.size(1) % kU8S8Panel == 0 ? "" : "outputs do not fill panels";
}

namespace {

// [outputs] once for each place of the window.
PlanValueId repeat_numbers(PlanBuilder& builder, const std::string& name, const float* numbers, int64_t outputs,
                           int64_t times) {
  if (builder.has_packed(name)) return builder.find_packed(name);
  Array all = make_array(Dtype::f32, {outputs * times});
  for (int64_t i = 0; i < outputs * times; ++i) all.data<float>()[i] = numbers[i % outputs];
  return builder.add_packed(name, std::move(all));
}

// Weight [inputs, outputs, places] as that of a linear with a block of outputs for each place.
PackedInt8 pack_transposed(PlanBuilder& builder, const Node& node, const at::Tensor& weight) {
  const std::string name = weight_name(builder, node) + ".u8s8.transposed", sums_name = name + ".sums";
  if (!builder.has_packed(name)) {
    const at::Tensor contiguous = weight.contiguous();
    const Array source = share_tensor(contiguous);
    const int64_t inputs = weight.size(0), outputs = weight.size(1), places = weight.size(2) * weight.size(3);
    std::vector<int8_t> rows(static_cast<size_t>(weight.numel()));
    for (int64_t k = 0; k < inputs; ++k) {
      for (int64_t n = 0; n < outputs; ++n) {
        for (int64_t place = 0; place < places; ++place) {
          rows[static_cast<size_t>((place * outputs + n) * inputs + k)] =
              source.data<int8_t>()[(k * outputs + n) * places + place];
        }
      }
    }
    Array packed = make_array(Dtype::i8, {packed_u8s8_size(places * outputs, inputs, {})});
    Array sums = make_array(Dtype::i32, {places * outputs});
    pack_u8s8(rows.data(), places * outputs, inputs, {}, packed.data<int8_t>(), sums.data<int32_t>());
    builder.add_packed(name, std::move(packed));
    builder.add_packed(sums_name, std::move(sums));
  }
  return {builder.find_packed(name), builder.find_packed(sums_name)};
}

}  // namespace

void emit_conv_transposed_u8s8(PlanBuilder& builder, const Node& node) {
  const at::Tensor& weight = *builder.constant(node.argument("weight").value());
  const int64_t outputs = weight.size(1), places = weight.size(2) * weight.size(3);
  const PackedInt8 packed = pack_transposed(builder, node, weight);
  const auto scale = static_cast<float>(read_number(node.argument("x_scale")));
  std::vector<float> multiplier;
  const Array scales = share_tensor(*builder.constant(node.argument("weight_scales").value()));
  for (int64_t i = 0; i < outputs; ++i) multiplier.push_back(scales.data<float>()[i] * scale);
  const std::string times = ".repeated." + std::to_string(places);
  PlanValueId bias = PlanValueId::none;
  if (node.argument("bias").is_value()) {
    const Array numbers = share_tensor(*builder.constant(node.argument("bias").value()));
    bias =
        repeat_numbers(builder, constant_name(builder, node, "bias") + times, numbers.data<float>(), outputs, places);
  }
  ConvTransposedU8S8Step step;
  step.kernel = {weight.size(2), weight.size(3)};
  step.quantized.x_zero = read_zero_point(node, "x_zero");
  set_result(step, node);
  step.x = {builder.use_dense(node.argument("x"), node, Format::channels_last)};
  step.weight = {packed.weight};
  const std::string multiplier_name =
      constant_name(builder, node, "weight_scales") + ".multiplier." + format_number(static_cast<double>(scale));
  step.multiplier = {repeat_numbers(builder, multiplier_name + times, multiplier.data(), outputs, places)};
  step.weight_sums = {packed.sums};
  step.bias = {bias};
  step.y = {builder.make(node.result(), Storage::arena, Format::channels_last)};
  builder.add_step(step, node);
}

namespace {

std::string refuse_conversion(const PlanBuilder& builder, const Node& node, Dtype from, Dtype to) {
  return first_refusal(
      {refuse_tensor(builder, node.argument("x"), from), refuse_tensor(builder, Argument(node.result()), to),
       refuse_number(node.argument("scale"), "scale"), refuse_number(node.argument("zero_point"), "zero_point")});
}

void emit_conversion(PlanBuilder& builder, const Node& node, std::vector<std::string> program) {
  const ValueId x = node.argument("x").value();
  const Format format = builder.format(x);
  ElementwiseStep step;
  step.program = std::move(program);
  step.operands.values = {builder.use(x)};
  step.y = {builder.make(node.result(), Storage::arena, format)};
  builder.add_step(step, node);
}

}  // namespace

std::string refuse_quantize(const PlanBuilder& builder, const Node& node) {
  return refuse_conversion(builder, node, Dtype::f32, Dtype::u8);
}

namespace {

// An image of few channels in row order that only convolutions read: they want its channels beside each other.
bool is_image_of_convolutions(const PlanBuilder& builder, const Node& node) {
  const ValueId x = node.argument("x").value();
  const std::vector<Dimension>& sizes = builder.type(x).sizes;
  if (sizes.size() != 4 || builder.format(x) != Format::row_major) return false;
  const auto channels = sizes[1].constant();
  if (!channels || *channels < 2 || *channels > 4) return false;
  bool all = true;
  const auto check = [&](const Argument& argument, bool is_conv) {
    for_each_value(argument, [&](ValueId value) { all = all && (value != node.result() || is_conv); });
  };
  for (const Node& reader : builder.program().nodes) {
    const bool is_conv = reader.op.name().starts_with("lissome::conv_int8");
    for (size_t i = 0; i < reader.arguments.size(); ++i) check(reader.arguments[i], is_conv && i == 0);
  }
  for (const ProgramOutput& output : builder.program().outputs) check(output.value, false);
  return all;
}

}  // namespace

void emit_quantize(PlanBuilder& builder, const Node& node) {
  const float inverse = 1.0f / static_cast<float>(read_number(node.argument("scale")));
  if (is_image_of_convolutions(builder, node)) {
    QuantizeImageStep step;
    step.inverse = inverse;
    step.zero = read_zero_point(node, "zero_point");
    step.x = {builder.use_dense(node.argument("x"), node)};
    step.y = {builder.make(node.result(), Storage::arena, Format::channels_last)};
    return builder.add_step(step, node);
  }
  emit_conversion(builder, node,
                  {"load 0 0 0 0 0 0", "quantize 1 0 0 0 " + format_number(static_cast<double>(inverse)) + " " +
                                           format_number(read_number(node.argument("zero_point")))});
}

std::string refuse_dequantize(const PlanBuilder& builder, const Node& node) {
  return refuse_conversion(builder, node, Dtype::u8, Dtype::f32);
}

void emit_dequantize(PlanBuilder& builder, const Node& node) {
  const double scale = static_cast<float>(read_number(node.argument("scale")));
  emit_conversion(
      builder, node,
      {"load 0 0 0 0 0 0", "constant 1 0 0 0 " + format_number(read_number(node.argument("zero_point"))) + " 0",
       "subtract 0 0 1 0 0 0", "constant 1 0 0 0 " + format_number(scale) + " 0", "multiply 0 0 1 0 0 0"});
}

}  // namespace lissome

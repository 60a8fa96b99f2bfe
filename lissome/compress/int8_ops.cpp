#include "lissome/compress/int8_ops.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <map>

namespace lissome {
namespace {

// Arguments by name, put into schema order; a name that the schema lacks is our mistake.
ArgumentList order_arguments(const Op& op, const std::map<std::string, Argument>& named) {
  ArgumentList arguments(op.schema().arguments().size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto& fallback = op.schema().arguments()[i].default_value();
    if (fallback && fallback->isDouble()) arguments[i] = fallback->toDouble();
    if (fallback && fallback->isInt()) arguments[i] = fallback->toInt();
  }
  for (const auto& [name, value] : named) {
    const int index = op.argument_index(name);
    LISSOME_CHECK(index >= 0, op.name(), " has no argument ", name);
    arguments[static_cast<size_t>(index)] = value;
  }
  return arguments;
}

std::string choose_op(const Layer& layer, bool gives_u8) {
  if (layer.dynamic) return "lissome::linear_dynamic_int8";
  const std::string kind = layer.transposed ? "lissome::conv_transposed_int8"
                           : layer.is_conv  ? "lissome::conv_int8"
                                            : "lissome::linear_int8";
  return gives_u8 ? kind + "_u8" : kind;
}

}  // namespace

ValueId add_quantize(Program& program, ValueId value, const ActivationRange& range) {
  ValueType type = program.value(value).type;
  type.dtype = Dtype::u8;
  return program.add_node(Op::find("lissome::quantize"), {value, range.scale(), range.zero_point()}, {std::move(type)})
      .result();
}

std::optional<ActivationRange> read_range(const Node& node) {
  if (!node.is("lissome::quantize") && !node.is("lissome::dequantize")) return std::nullopt;
  const auto* const scale = node.argument("scale").get<double>();
  const auto* const zero = node.argument("zero_point").get<int64_t>();
  if (scale == nullptr || zero == nullptr || *zero < 0 || *zero > 255) return std::nullopt;
  ActivationRange range;
  range.low = -static_cast<double>(*zero) * *scale, range.high = static_cast<double>(255 - *zero) * *scale;
  return range.has_scale() ? std::optional(range) : std::nullopt;
}

ValueId add_int8_layer(Program& program, const Node& node, const Layer& layer, ValueId input, const Epilogue& epilogue,
                       const std::optional<ActivationRange>& result_range, ValueType type) {
  const std::string name = layer.name;
  std::map<std::string, Argument> named = {
      {"x", input},
      {"weight", program.add_weight(name + ".int8", layer.weight, WeightRole::constant)},
      {"weight_scales", program.add_weight(name + ".scales", layer.weight_scales, WeightRole::constant)},
      {"act", epilogue.activation}};
  if (!layer.transposed) named["residual"] = epilogue.residual;
  if (layer.bias.defined()) named["bias"] = program.add_weight(name + ".bias", layer.bias, WeightRole::constant);
  if (!layer.dynamic) {
    named["x_scale"] = layer.range.scale();
    named["x_zero"] = layer.range.zero_point();
  }
  if (layer.is_conv && !layer.transposed) {
    for (const char* setting : {"stride", "padding", "dilation", "groups"}) named[setting] = node.argument(setting);
  }
  if (epilogue.residual_range) {
    named["residual_scale"] = epilogue.residual_range->scale();
    named["residual_zero"] = epilogue.residual_range->zero_point();
  }
  if (result_range) {
    named["out_scale"] = result_range->scale();
    named["out_zero"] = result_range->zero_point();
    type.dtype = Dtype::u8;
  }
  const Op op = Op::find(choose_op(layer, result_range.has_value()));
  return program.add_node(op, order_arguments(op, named), {std::move(type)}, node.origin).result();
}

Epilogue read_epilogue(const Node& node) {
  if (!node.is("lissome::linear_act") && !node.is("lissome::conv_act")) return {"none", Argument()};
  return {*node.argument("act").get<std::string>(), node.argument("residual")};
}

}  // namespace lissome

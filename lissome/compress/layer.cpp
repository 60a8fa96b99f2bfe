#include "lissome/compress/layer.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>

#include <algorithm>
#include <cmath>

#include "lissome/compress/group_rounding.h"
#include "lissome/compress/int8_ops.h"
#include "lissome/compress/symmetric_rows.h"

namespace lissome {
namespace {

bool is_transposed(const Node& node) { return is_convolution(node) && node.argument("transposed") != Argument(false); }

bool all_equal(const Argument& argument, int64_t wanted) {
  for (const Argument& item : argument.list()) {
    if (item != Argument(wanted)) return false;
  }
  return true;
}

bool has_windows_beside(const Node& node, const at::Tensor& weight) {
  const auto& stride = node.argument("stride").list();
  const bool residual = node.op.argument_index("residual") >= 0 && !node.argument("residual").is_none();
  return node.argument("transposed") == Argument(true) && stride.size() == 2 && stride[0] == Argument(weight.size(2)) &&
         stride[1] == Argument(weight.size(3)) && all_equal(node.argument("padding"), 0) &&
         all_equal(node.argument("output_padding"), 0) && all_equal(node.argument("dilation"), 1) &&
         node.argument("groups") == Argument(1) && weight.size(1) % 32 == 0 && !residual;
}

std::string find_refusal(const Program& program, const Node& node, const QuantizeOptions& options) {
  const at::Tensor weight = find_constant(program, node.argument("weight"));
  if (!weight.defined()) return "its weight is not constant";
  if (weight.scalar_type() != at::kFloat) return "its weight is not f32";
  if (std::string refusal = refuse_infinite(weight, "weight"); !refusal.empty()) return refusal;
  if (is_recurrent(node)) {
    if (node.results.front() == ValueId::none) return "its outputs are not read";
    if (weight.size(2) < 4) return "fewer than four products a sum: nothing to gain";
    return is_kept(node, options) ? "kept in float by request" : "";
  }
  if (!node.argument("bias").is_none()) {
    const at::Tensor bias = find_constant(program, node.argument("bias"));
    if (!bias.defined()) return "its bias is not constant";
    if (std::string refusal = refuse_infinite(bias, "bias"); !refusal.empty()) return refusal;
  }
  if (is_convolution(node)) {
    if (weight.dim() > 4) return "of convolutions only those over one and two dimensions have an int8 form";
    if (is_transposed(node) && !has_windows_beside(node, weight))
      return "of transposed convolutions only those have an int8 form whose stride is their window, 32 outputs at a "
             "time";
  }
  if (weight.numel() / std::max<int64_t>(weight.size(0), 1) < 4)
    return "fewer than four products a sum: nothing to gain";
  if (is_kept(node, options)) return "kept in float by request";
  return {};
}

// What a convolution adds, where it is no smaller than the result.
ValueId find_residual(const Program& program, const Node& node) {
  const int index = node.op.argument_index("residual");
  if (!is_convolution(node) || index < 0 || !node.argument("residual").is_value()) return ValueId::none;
  const ValueId residual = node.argument("residual").value();
  const bool whole = program.value(residual).type.sizes == program.value(node.result()).type.sizes;
  return whole ? residual : ValueId::none;
}

// Symmetric, a scale for each output of each direction.
void quantize_recurrent_weight(const at::Tensor& weight, Layer& layer) {
  quantize_weight(weight.reshape({-1, weight.size(2)}), layer);
  layer.weight = layer.weight.reshape(weight.sizes());
  layer.weight_scales = layer.weight_scales.reshape({weight.size(0), weight.size(1)});
}

// `states` are those of both directions beside each other.
at::Tensor multiply_states(const Layer& layer, const at::Tensor& weight, const at::Tensor& states) {
  std::vector<at::Tensor> products;
  for (int64_t d = 0; d < weight.size(0); ++d) {
    const at::Tensor own = states.narrow(-1, d * weight.size(2), weight.size(2));
    if (weight.scalar_type() != at::kChar) {
      products.push_back(at::linear(own, weight.select(0, d)));
      continue;
    }
    std::vector<c10::IValue> arguments = {own, weight.select(0, d), layer.weight_scales.select(0, d), {}, "none", {}};
    Op::find("lissome::linear_dynamic_int8").handle().callBoxed(arguments);
    products.push_back(arguments.at(0).toTensor());
  }
  return at::cat(products, -1);
}

}  // namespace

ValueType make_f32_type(const at::Tensor& tensor) {
  std::vector<Dimension> sizes;
  for (const int64_t size : tensor.sizes()) sizes.emplace_back(size);
  return {ValueKind::tensor, Dtype::f32, true, std::move(sizes)};
}

bool is_convolution(const Node& node) { return node.is("aten::convolution") || node.is("lissome::conv_act"); }

bool is_linear(const Node& node) { return node.is("aten::linear") || node.is("lissome::linear_act"); }

bool is_recurrent(const Node& node) { return node.is("lissome::lstm_layer") || node.is("lissome::gru_layer"); }

std::string refuse_infinite(const at::Tensor& tensor, const char* what) {
  if (tensor.isfinite().all().item().toBool()) return {};
  return std::string("its ") + what + " is infinite or NaN";
}

double find_signal_to_noise(double signal, double noise) {
  constexpr double kExact = 200;
  return noise == 0 ? kExact : 10 * std::log10(signal / noise);
}

ValueId find_input(const Node& node) {
  return is_recurrent(node) ? node.results.front() : node.arguments.front().value();
}

at::Tensor find_constant(const Program& program, const Argument& argument) {
  if (!argument.is_value()) return {};
  const Weight* weight = program.find_weight(argument.value());
  if (weight == nullptr) return {};
  for (const StateWrite& write : program.writes) {
    if (write.target == weight->value) return {};
  }
  return weight->tensor;
}

void quantize_weight(const at::Tensor& given, Layer& layer, const at::Tensor& factors) {
  if (layer.group_bits > 0) {
    const at::Tensor weight = factors.defined() ? given.to(at::kDouble).mul(factors) : given;
    const GroupWeight rounded = round_to_nearest(weight.to(at::kFloat), layer.importance, layer.group_bits);
    layer.weight = pack_numbers(rounded.numbers, layer.group_bits);
    layer.weight_scales = pack_scales(rounded.scales);
    return;
  }
  const at::Tensor weight = layer.transposed ? given.transpose(0, 1) : given;
  const auto as_rows = [](const at::Tensor& tensor) { return tensor.reshape({tensor.size(0), -1}).contiguous(); };
  at::Tensor row_factors;
  if (factors.defined())
    row_factors = factors.dim() == 1 ? factors.unsqueeze(0).contiguous() : as_rows(factors.expand_as(weight));
  const SymmetricRows rounded = round_rows(as_rows(weight), row_factors);
  const at::Tensor bytes = rounded.numbers.reshape(weight.sizes());
  layer.weight = (layer.transposed ? bytes.transpose(0, 1) : bytes).contiguous();
  layer.weight_scales = rounded.scales;
}

bool is_kept(const Node& node, const QuantizeOptions& options) {
  const std::string module = node.origin == nullptr ? std::string() : node.origin->module;
  const auto is_among = [&](const std::vector<std::string>& patterns) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const std::string& pattern) { return matches_pattern(pattern, module); });
  };
  return is_among(options.keep_float) || (!options.only.empty() && !is_among(options.only));
}

bool is_layer(const Node& node) { return is_linear(node) || is_convolution(node) || is_recurrent(node); }

void check_patterns(const Program& program, const QuantizeOptions& options, bool (*is_wanted)(const Node&)) {
  std::vector<std::string> modules;
  for (const Node& node : program.nodes) {
    if (!is_wanted(node) || node.origin == nullptr || node.origin->module.empty()) continue;
    if (std::ranges::find(modules, node.origin->module) == modules.end()) modules.push_back(node.origin->module);
  }
  std::vector<std::string> patterns = options.only;
  patterns.insert(patterns.end(), options.keep_float.begin(), options.keep_float.end());
  for (const std::string& pattern : patterns) {
    if (std::any_of(modules.begin(), modules.end(), [&](const auto& name) { return matches_pattern(pattern, name); }))
      continue;
    throw_error(ErrorKind::usage, "no layer fits the pattern ", quote(pattern), "; ",
                modules.empty() ? "no layer of the model belongs to a module"
                                : "the modules with layers are " + join_few(std::move(modules), 8));
  }
}

std::vector<Layer> find_layers(const Program& program, const QuantizeOptions& options) {
  std::vector<Layer> layers;
  for (size_t position = 0; position < program.nodes.size(); ++position) {
    const Node& node = program.nodes[position];
    if (!is_layer(node)) continue;
    Layer layer;
    layer.position = position;
    layer.name = program.value(node.results.front()).name;
    layer.is_conv = is_convolution(node);
    layer.transposed = is_transposed(node);
    layer.recurrent = is_recurrent(node);
    layer.dynamic = layer.recurrent || (!layer.is_conv && options.dynamic_linears);
    layer.input = find_input(node);
    layer.residual = find_residual(program, node);
    layer.reason = find_refusal(program, node, options);
    if (layer.reason.empty() && layer.recurrent) {
      quantize_recurrent_weight(find_constant(program, node.argument("weight")), layer);
    } else if (layer.reason.empty()) {
      quantize_weight(find_constant(program, node.argument("weight")), layer);
      layer.bias = find_constant(program, node.argument("bias"));
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

void visit_layer_inputs(const Program& program, const std::map<ValueId, std::vector<Layer*>>& by_input,
                        const std::vector<c10::IValue>& batch,
                        const std::function<void(Layer&, const at::Tensor&)>& visit) {
  const auto visit_value = [&](ValueId value, const c10::IValue& content) {
    const auto entry = by_input.find(value);
    if (entry == by_input.end() || !content.isTensor()) return;
    for (Layer* layer : entry->second) visit(*layer, content.toTensor());
  };
  for (size_t i = 0; i < program.inputs.size() && i < batch.size(); ++i) visit_value(program.inputs[i].value, batch[i]);
  InterpretOptions options;
  options.observe = [&](const Node& node, std::span<const c10::IValue> results) {
    for (size_t i = 0; i < node.results.size() && i < results.size(); ++i) visit_value(node.results[i], results[i]);
  };
  interpret(program, batch, options);
}

at::Tensor run_float(const Program& program, const Layer& layer, const at::Tensor& input) {
  const Node& node = program.nodes[layer.position];
  const at::Tensor weight = find_constant(program, node.argument("weight"));
  if (layer.recurrent) return multiply_states(layer, weight, input);
  const at::Tensor bias = find_constant(program, node.argument("bias"));
  if (!layer.is_conv) return at::linear(input, weight, bias.defined() ? std::optional(bias) : std::nullopt);
  Program alone;
  const ValueType type{ValueKind::tensor, Dtype::f32, false, {}};
  ArgumentList arguments(node.arguments.begin(), node.arguments.begin() + 9);  // those of aten::convolution
  arguments[0] = alone.add_input("x", type);
  arguments[1] = alone.add_weight("weight", weight, WeightRole::constant);
  if (bias.defined()) arguments[2] = alone.add_weight("bias", bias, WeightRole::constant);
  arguments.insert(arguments.end(), {Argument("none"), Argument()});
  const ValueId result = alone.add_node(Op::find("lissome::conv_act"), std::move(arguments), {type}).result();
  alone.outputs.push_back({result, "y"});
  return interpret(alone, {input}).at(0).toTensor();
}

at::Tensor run_quantized(const Program& program, const Layer& layer, const at::Tensor& input) {
  if (layer.recurrent) return multiply_states(layer, layer.weight, input);
  if (layer.group_bits > 0) {
    std::vector<c10::IValue> arguments = {input, layer.weight, layer.weight_scales, layer.bias, "none", {}};
    Op::find("lissome::linear_group").handle().callBoxed(arguments);
    return arguments.at(0).toTensor();
  }
  // A program of the layer alone says the same as the rewritten one will.
  Program alone;
  const ValueType type{ValueKind::tensor, Dtype::f32, false, {}};
  const ValueId x = alone.add_input("x", type);
  ValueId quantized = x;
  if (!layer.dynamic) quantized = add_quantize(alone, x, layer.range);
  const ValueId result =
      add_int8_layer(alone, program.nodes[layer.position], layer, quantized, {"none", Argument()}, std::nullopt, type);
  alone.outputs.push_back({result, "y"});
  return interpret(alone, {input}).at(0).toTensor();
}

}  // namespace lissome

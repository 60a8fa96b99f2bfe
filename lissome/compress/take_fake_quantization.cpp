#include <ATen/core/ivalue.h>

#include <cmath>
#include <optional>

#include "lissome/compress/fake_quantization.h"
#include "lissome/compress/layer.h"
#include "lissome/pass.h"

namespace lissome {
namespace {

constexpr int64_t kNumbers = 256;

// The number of a literal, or of a constant tensor with one element.
std::optional<double> read_number(const Program& program, const Argument& argument) {
  if (const auto* number = argument.get<double>()) return *number;
  if (const auto* number = argument.get<int64_t>()) return static_cast<double>(*number);
  const at::Tensor tensor = find_constant(program, argument);
  if (!tensor.defined() || tensor.numel() != 1) return std::nullopt;
  return tensor.item().toDouble();
}

// `node` has scale, zero point and limits under these names, as all ops that round to numbers do.
std::optional<ActivationRange> read_range(const Program& program, const Node& node) {
  const auto scale = read_number(program, node.argument("scale")),
             zero = read_number(program, node.argument("zero_point"));
  const auto low = read_number(program, node.argument("quant_min")),
             high = read_number(program, node.argument("quant_max"));
  if (!scale || !zero || !low || !high || *high - *low != kNumbers - 1) return std::nullopt;
  const double from_low = std::nearbyint(*zero) - *low;  // the zero point among 0..255
  if (from_low < 0 || from_low >= kNumbers) return std::nullopt;
  ActivationRange range;
  range.low = -from_low * *scale, range.high = (kNumbers - 1 - from_low) * *scale;
  return range.has_scale() ? std::optional(range) : std::nullopt;
}

bool is_named(const Node& node, std::string_view op) {
  return node.op.has_schema() && std::string_view(node.op.name()).substr(0, node.op.name().find('.')) == op;
}

bool is_fake_quantization(const Node& node) {
  return is_named(node, "aten::fake_quantize_per_tensor_affine") ||
         is_named(node, "aten::_fake_quantize_learnable_per_tensor_affine");
}

}  // namespace

std::map<ValueId, ActivationRange> take_fake_quantization(Program& program) {
  std::map<ValueId, ActivationRange> ranges;
  std::map<ValueId, const Node*> rounding;  // the node that gives a value in integers
  std::map<ValueId, ValueId> replaced;      // a rounded value -> what was rounded
  const auto resolve = [&](ValueId value) {
    const auto found = replaced.find(value);
    return found == replaced.end() ? value : found->second;
  };
  const std::vector<Node> nodes = std::move(program.nodes);
  program.nodes.clear();
  for (const Node& given : nodes) {
    Node node = given;
    for (Argument& argument : node.arguments) argument = map_values(argument, resolve);
    const Node* rounds = is_fake_quantization(node) ? &node : nullptr;
    if (is_named(node, "lissome::quantize_per_tensor")) rounding.emplace(node.result(), &given);
    if (is_named(node, "lissome::dequantize_per_tensor")) {
      const auto found = rounding.find(node.arguments.front().value());
      if (found != rounding.end()) rounds = found->second;
    }
    const auto range = rounds != nullptr ? read_range(program, *rounds) : std::nullopt;
    const ValueId source = rounds != nullptr ? resolve(rounds->arguments.front().value()) : ValueId::none;
    if (range && program.value(source).type.dtype == Dtype::f32) {
      const ActivationRange& first = ranges.emplace(source, *range).first->second;
      if (first.low == range->low && first.high == range->high) {
        replaced.emplace(node.result(), source);
        continue;
      }
    }
    program.nodes.push_back(std::move(node));
  }
  for (ProgramOutput& output : program.outputs) output.value = map_values(output.value, resolve);
  for (StateWrite& write : program.writes) write.value = resolve(write.value);
  run_passes({find_pass("remove_dead_nodes"), 1}, program, {});  // what made integers for the nodes that went
  return ranges;
}

}  // namespace lissome

#include "lissome/compress/int8_nodes.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>

#include <algorithm>
#include <array>

#include "lissome/compress/int8_ops.h"

namespace lissome {
namespace {

constexpr std::array kActivations = {"aten::celu",        "aten::clamp",     "aten::elu",      "aten::gelu",
                                     "aten::hardsigmoid", "aten::hardswish", "aten::hardtanh", "aten::mish",
                                     "aten::relu",        "aten::relu6",     "aten::selu",     "aten::leaky_relu",
                                     "aten::silu",        "aten::sigmoid",   "aten::softplus", "aten::tanh"};

bool is_activation_node(const Node& node) {
  if (std::find(kActivations.begin(), kActivations.end(), node.op.name()) == kActivations.end()) return false;
  return std::none_of(node.arguments.begin() + 1, node.arguments.end(),
                      [](const Argument& argument) { return argument.is_value(); });
}

// Height and width, where they are known.
std::optional<std::vector<int64_t>> find_image_size(const ValueType& type) {
  if (!type.sized || type.sizes.size() != 4) return std::nullopt;
  const auto height = type.sizes[2].constant(), width = type.sizes[3].constant();
  if (!height || !width || *height == 0 || *width == 0) return std::nullopt;
  return std::vector<int64_t>{*height, *width};
}

bool lists(const Argument& numbers, std::vector<int64_t> wanted) {
  if (!numbers.is_list() || numbers.list().size() != wanted.size()) return false;
  return std::equal(wanted.begin(), wanted.end(), numbers.list().begin(),
                    [](int64_t number, const Argument& item) { return item == Argument(number); });
}

// Over all of height and width.
bool is_global_average(const Node& node) {
  if (node.is("aten::adaptive_avg_pool2d")) return lists(node.argument("output_size"), {1, 1});
  return node.is("aten::mean.dim") && node.argument("dtype").is_none() &&
         (lists(node.argument("dim"), {2, 3}) || lists(node.argument("dim"), {-2, -1}) ||
          lists(node.argument("dim"), {-1, -2}));
}

bool is_average_node(const Program& program, const Node& node) {
  if (!node.is("aten::avg_pool2d") && !is_global_average(node)) return false;
  for (size_t i = 1; i < node.arguments.size(); ++i) {
    bool computed = false;
    for_each_value(node.arguments[i], [&](ValueId) { computed = true; });
    if (computed) return false;
  }
  return find_image_size(program.value(node.arguments.front().value()).type).has_value();
}

ValueId add_table(Program& program, const Node& node, ValueId x, const ActivationRange& from,
                  const ActivationRange& to) {
  // The node itself says what it makes of each of the 256 numbers.
  Program alone;
  const ValueType numbers{ValueKind::tensor, Dtype::f32, true, {Dimension(256)}};
  ArgumentList arguments = node.arguments;
  arguments.front() = alone.add_input("x", numbers);
  const ValueId y = alone.add_node(node.op, std::move(arguments), {numbers}).result();
  alone.outputs.push_back({add_quantize(alone, y, to), "table"});
  const at::Tensor bytes = at::arange(256, at::kFloat)
                               .sub(static_cast<double>(from.zero_point()))
                               .mul(static_cast<double>(static_cast<float>(from.scale())));
  const at::Tensor table = interpret(alone, {bytes}).at(0).toTensor();
  ValueType type = program.value(node.result()).type;
  type.dtype = Dtype::u8;
  const std::string name = program.value(node.result()).name + ".table";
  return program
      .add_node(Op::find("lissome::lut_u8"), {x, program.add_weight(name, table, WeightRole::constant)},
                {std::move(type)}, node.origin)
      .result();
}

ArgumentList to_list(const std::vector<int64_t>& numbers) { return {numbers.begin(), numbers.end()}; }

// [N, C, 1, 1] as [N, C].
ValueId drop_pixels(Program& program, const Node& node, ValueId x) {
  ValueType type = program.value(node.result()).type;
  type.dtype = Dtype::u8;
  return program.add_node(Op::find("aten::flatten.using_ints"), {x, 1, 3}, {std::move(type)}, node.origin).result();
}

ValueId add_average(Program& program, const Node& node, ValueId x, const ActivationRange& from,
                    const ActivationRange& to) {
  const ValueType source = program.value(node.arguments.front().value()).type;
  ValueType type = program.value(node.result()).type;
  Argument kernel, stride, padding = to_list({0, 0}), ceil_mode = false, counts_padding = true, divisor;
  if (is_global_average(node)) {
    kernel = stride = to_list(*find_image_size(source));
    type = source;
    type.sizes[2] = type.sizes[3] = Dimension(1);
  } else {
    kernel = node.argument("kernel_size"), stride = node.argument("stride"), padding = node.argument("padding");
    ceil_mode = node.argument("ceil_mode"), counts_padding = node.argument("count_include_pad");
    divisor = node.argument("divisor_override");
  }
  type.dtype = Dtype::u8;
  const bool flat = program.value(node.result()).type.sizes.size() == 2;
  const ValueId y = program
                        .add_node(Op::find("lissome::avg_pool2d_u8"),
                                  {x, from.scale(), from.zero_point(), kernel, stride, padding, ceil_mode,
                                   counts_padding, divisor, to.scale(), to.zero_point()},
                                  {std::move(type)}, node.origin)
                        .result();
  return flat ? drop_pixels(program, node, y) : y;
}

}  // namespace

bool is_int8_node(const Program& program, const Node& node) {
  if (node.results.size() != 1 || node.arguments.empty() || !node.arguments.front().is_value()) return false;
  const ValueType& from = program.value(node.arguments.front().value()).type;
  const ValueType& to = program.value(node.result()).type;
  if (from.kind != ValueKind::tensor || from.dtype != Dtype::f32 || to.dtype != Dtype::f32) return false;
  return is_activation_node(node) || is_average_node(program, node);
}

ValueId add_int8_node(Program& program, const Node& node, ValueId x, const ActivationRange& from,
                      const ActivationRange& to) {
  return is_activation_node(node) ? add_table(program, node, x, from, to) : add_average(program, node, x, from, to);
}

}  // namespace lissome

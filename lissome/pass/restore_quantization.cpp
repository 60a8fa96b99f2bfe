// Fake quantization, and dequantize(quantize(x)) of quantized exports, round f32 to the numbers of a scale. Those with
// 256 numbers become lissome::quantize and lissome::dequantize, which have kernels, and whose u8 an int8 layer reads.
#include <cmath>
#include <optional>

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

constexpr double kNumbers = 256;

struct Scale {
  double scale = 1;
  int64_t zero = 0;  // among 0..255
  bool operator==(const Scale&) const = default;
};

bool is_named(const Node& node, std::string_view op) {
  return node.op.has_schema() && std::string_view(node.op.name()).substr(0, node.op.name().find('.')) == op;
}

bool is_fake_quantization(const Node& node) {
  return is_named(node, "aten::fake_quantize_per_tensor_affine") ||
         is_named(node, "aten::_fake_quantize_learnable_per_tensor_affine");
}

// Scale, zero point and limits have the same names in all these ops.
std::optional<Scale> read_scale(Rewriter& rewriter, const Node& node) {
  const auto number = [&](const char* name) {
    return constant_number(rewriter, rewriter.resolve(node.argument(name)));
  };
  const auto scale = number("scale"), zero = number("zero_point"), low = number("quant_min"),
             high = number("quant_max");
  if (!scale || !zero || !low || !high || *high - *low != kNumbers - 1) return std::nullopt;
  const double from_low = std::nearbyint(*zero) - *low;
  const float narrow = static_cast<float>(*scale);
  if (!(from_low >= 0 && from_low < kNumbers) || !(narrow > 0) || !std::isnormal(1 / narrow)) return std::nullopt;
  return Scale{narrow, static_cast<int64_t>(from_low)};
}

// What is rounded, and to which numbers.
std::optional<std::pair<Argument, Scale>> find_rounding(Rewriter& rewriter, const Node& node) {
  const Node* rounds = is_fake_quantization(node) ? &node : nullptr;
  if (is_named(node, "lissome::dequantize_per_tensor")) {
    const Argument integers = rewriter.resolve(node.arguments.front());
    const Node* producer = integers.is_value() ? rewriter.producer(integers.value()) : nullptr;
    if (producer != nullptr && is_named(*producer, "lissome::quantize_per_tensor")) rounds = producer;
  }
  if (rounds == nullptr) return std::nullopt;
  const auto scale = read_scale(rewriter, *rounds);
  if (!scale || read_scale(rewriter, node) != scale) return std::nullopt;
  const Argument source = rewriter.resolve(rounds->arguments.front());
  const auto is_f32 = [&](const Argument& value) { return rewriter.type_of(value).dtype == Dtype::f32; };
  if (!source.is_value() || !is_f32(source) || !is_f32(node.result())) return std::nullopt;
  return std::pair(source, *scale);
}

}  // namespace

int restore_quantization(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    const Node& node = rewriter.node(position);
    const auto rounding = find_rounding(rewriter, node);
    if (!rounding) continue;
    const auto& [source, scale] = *rounding;
    ValueType type = rewriter.type_of(node.result());
    type.dtype = Dtype::u8;
    const ValueId integers = rewriter.insert_before(position, Op::find("lissome::quantize"),
                                                    {source, scale.scale, scale.zero}, {type}, node.origin);
    rewriter.replace_node(position, Op::find("lissome::dequantize"), {integers, scale.scale, scale.zero});
  }
  return rewriter.finish();
}

}  // namespace lissome

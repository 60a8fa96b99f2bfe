// ReLU, ReLU6, hard sigmoid and hard swish (Howard et al. 2019) as clamps and products, the way people and the
// decomposed dialect spell them.

#include "lissome/pass/match.h"
#include "lissome/pass/passes.h"

namespace lissome {
namespace {

// The value that a node holds between 0 and `top`; `top` absent means no upper bound.
struct Clamped {
  ValueId value = ValueId::none;
  std::optional<double> top;
};

std::optional<Clamped> match_clamp(Rewriter& rewriter, const Node& node) {
  const auto bounds = [&](std::string_view low, std::string_view high) -> std::optional<Clamped> {
    if (constant_number(rewriter, node.argument(low)) != 0.0) return std::nullopt;
    const ValueId value = rewriter.resolve(node.argument("self")).value();
    if (high.empty() || node.argument(high).is_none()) return Clamped{value, std::nullopt};
    const auto top = constant_number(rewriter, node.argument(high));
    return top ? std::optional(Clamped{value, top}) : std::nullopt;
  };
  if (node.is("aten::relu6")) return Clamped{rewriter.resolve(node.argument("self")).value(), 6.0};
  if (node.is("aten::hardtanh")) return bounds("min_val", "max_val");
  if (node.is("aten::clamp") || node.is("aten::clip")) return bounds("min", "max");
  if (node.is("aten::clamp_min")) return bounds("min", "");
  if (node.is("aten::relu")) return Clamped{rewriter.resolve(node.argument("self")).value(), std::nullopt};
  return std::nullopt;
}

// The two bounds one after the other: clamp(clamp(x, min=0), max=6).
std::optional<Clamped> match_clamps(Rewriter& rewriter, const Node& node) {
  if (!node.is("aten::clamp") && !node.is("aten::clip") && !node.is("aten::clamp_max"))
    return match_clamp(rewriter, node);
  const bool upper = node.is("aten::clamp_max") || node.argument("min").is_none();
  if (!upper) return match_clamp(rewriter, node);
  const auto top = constant_number(rewriter, node.argument("max"));
  const Node* inner = rewriter.producer(rewriter.resolve(node.argument("self")).value());
  const auto lower = inner == nullptr || !top ? std::nullopt : match_clamp(rewriter, *inner);
  if (!lower || lower->top) return std::nullopt;
  return Clamped{lower->value, top};
}

// clamp(x, 0, 6) -> relu6, clamp(x, min=0) -> relu.
bool convert_clamp(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (node.is("aten::relu6") || node.is("aten::relu") || !is_sized_float(rewriter.type_of(node.result()))) return false;
  const auto clamped = match_clamps(rewriter, node);
  if (!clamped || clamped->value == ValueId::none) return false;
  if (clamped->top && *clamped->top != 6) return false;
  // A bound that is a tensor may promote.
  if (rewriter.type_of(clamped->value) != rewriter.type_of(node.result())) return false;
  rewriter.replace_node(position, Op::find(clamped->top ? "aten::relu6" : "aten::relu"), {clamped->value});
  return true;
}

// clamp(x + 3, 0, 6) read by the pattern alone: x.
std::optional<ValueId> match_ramp(Rewriter& rewriter, ValueId value) {
  const Node* node = rewriter.producer(value);
  const auto clamped = node == nullptr ? std::nullopt : match_clamps(rewriter, *node);
  if (!clamped || clamped->top != 6.0) return std::nullopt;
  const auto offset = match_offset(rewriter, Argument(clamped->value));
  return offset && offset->number == 3 ? std::optional(offset->value) : std::nullopt;
}

// ramp(x) / 6 -> hardsigmoid, x * ramp(x) / 6 or x * hardsigmoid(x) -> hardswish.
bool fuse_ramp_product(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::mul.Tensor") || !is_sized_float(rewriter.type_of(node.result()))) return false;
  const ScaledValue whole = strip_scales(rewriter, node.result());
  if (const auto x = match_ramp(rewriter, whole.value)) {
    if (!is_near(whole.number, 1.0 / 6) || !is_closed(rewriter, node, {*x})) return false;
    rewriter.replace_node(position, Op::find("aten::hardsigmoid"), {*x});
    return true;
  }
  const auto product = match_product(rewriter, Argument(whole.value));
  if (!product) return false;
  for (const auto& [x, gate] : {*product, std::pair{product->second, product->first}}) {
    const ScaledValue scaled = strip_scales(rewriter, gate);
    const auto base = match_ramp(rewriter, scaled.value);
    const Node* sigmoid = rewriter.producer(Argument(scaled.value), "aten::hardsigmoid");
    const bool ramp = base && same_value(rewriter, *base, x) && is_near(whole.number * scaled.number, 1.0 / 6);
    const bool gated = sigmoid != nullptr && rewriter.resolve(sigmoid->argument("self")) == Argument(x) &&
                       is_near(whole.number * scaled.number, 1);
    if ((!ramp && !gated) || !is_closed(rewriter, node, {x})) continue;
    rewriter.replace_node(position, Op::find("aten::hardswish"), {x});
    return true;
  }
  return false;
}

}  // namespace

int fuse_hard_activation(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    const Node& node = rewriter.node(position);
    if (node.results.size() != 1 || node.result() == ValueId::none || !node.op.has_schema()) continue;
    convert_clamp(rewriter, position) || fuse_ramp_product(rewriter, position);
  }
  return rewriter.finish();
}

}  // namespace lissome

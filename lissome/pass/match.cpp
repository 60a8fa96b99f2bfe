#include "lissome/pass/match.h"

#include <cmath>

namespace lissome {
namespace {

ValueId resolved(Rewriter& rewriter, const Argument& argument) { return rewriter.resolve(argument).value(); }

std::optional<ScaledValue> match_number(Rewriter& rewriter, const Node& node, bool commutes) {
  const Argument self = rewriter.resolve(node.argument("self"));
  const Argument other = rewriter.resolve(node.argument("other"));
  if (const auto number = constant_number(rewriter.program(), other); number && self.is_value()) {
    return ScaledValue{self.value(), *number};
  }
  if (!commutes) return std::nullopt;
  if (const auto number = constant_number(rewriter.program(), self); number && other.is_value()) {
    return ScaledValue{other.value(), *number};
  }
  return std::nullopt;
}

bool has_unit_alpha(const Node& node) {
  const int alpha = node.op.argument_index("alpha");
  if (alpha < 0) return true;
  const Argument& value = node.arguments[static_cast<size_t>(alpha)];
  return value == Argument(1) || value == Argument(1.0);
}

}  // namespace

std::optional<ScaledValue> match_scale(Rewriter& rewriter, const Argument& argument) {
  if (!argument.is_value()) return std::nullopt;
  const Node* node = rewriter.producer(argument.value());
  if (node == nullptr) return std::nullopt;
  if (node->is("aten::mul.Tensor") || node->is("aten::mul.Scalar")) return match_number(rewriter, *node, true);
  if (!node->is("aten::div.Tensor") && !node->is("aten::div.Scalar")) return std::nullopt;
  std::optional<ScaledValue> scaled = match_number(rewriter, *node, false);
  if (scaled) scaled->number = 1 / scaled->number;
  return scaled;
}

std::optional<ScaledValue> match_offset(Rewriter& rewriter, const Argument& argument) {
  if (!argument.is_value()) return std::nullopt;
  const Node* node = rewriter.producer(argument.value());
  if (node == nullptr || node->op.argument_index("alpha") < 0 || !has_unit_alpha(*node)) return std::nullopt;
  if (node->is("aten::add.Tensor") || node->is("aten::add.Scalar")) return match_number(rewriter, *node, true);
  if (!node->is("aten::sub.Tensor") && !node->is("aten::sub.Scalar")) return std::nullopt;
  std::optional<ScaledValue> offset = match_number(rewriter, *node, false);
  if (offset) offset->number = -offset->number;
  return offset;
}

std::optional<std::pair<ValueId, ValueId>> match_product(Rewriter& rewriter, const Argument& argument) {
  const Node* node = rewriter.producer(argument, "aten::mul.Tensor");
  if (node == nullptr) return std::nullopt;
  const ValueId left = resolved(rewriter, node->argument("self"));
  const ValueId right = resolved(rewriter, node->argument("other"));
  if (left == ValueId::none || right == ValueId::none) return std::nullopt;
  return std::pair{left, right};
}

std::optional<std::pair<ValueId, ValueId>> match_sum(Rewriter& rewriter, const Argument& argument) {
  const Node* node = rewriter.producer(argument, "aten::add.Tensor");
  if (node == nullptr || !has_unit_alpha(*node)) return std::nullopt;
  const ValueId left = resolved(rewriter, node->argument("self"));
  const ValueId right = resolved(rewriter, node->argument("other"));
  if (left == ValueId::none || right == ValueId::none) return std::nullopt;
  return std::pair{left, right};
}

bool same_value(const Rewriter& rewriter, ValueId left, ValueId right) {
  return rewriter.resolve(Argument(left)) == rewriter.resolve(Argument(right));
}

bool is_near(double number, double expected) { return std::abs(number - expected) <= 1e-6 * std::abs(expected); }

}  // namespace lissome

#include "lissome/pass/match.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace lissome {
namespace {

constexpr size_t kLargestPattern = 64;  // nodes

ValueId resolved(Rewriter& rewriter, const Argument& argument) { return rewriter.resolve(argument).value(); }

std::optional<ScaledValue> match_number(Rewriter& rewriter, const Node& node, bool commutes) {
  const Argument self = rewriter.resolve(node.argument("self"));
  const Argument other = rewriter.resolve(node.argument("other"));
  const ValueType& result = rewriter.type_of(node.result());
  const auto keeps_type = [&](const Argument& value) {
    return value.is_value() && result.sized && rewriter.type_of(value) == result;
  };
  if (const auto number = constant_number(rewriter, other); number && keeps_type(self)) {
    return ScaledValue{self.value(), *number};
  }
  if (!commutes) return std::nullopt;
  if (const auto number = constant_number(rewriter, self); number && keeps_type(other)) {
    return ScaledValue{other.value(), *number};
  }
  return std::nullopt;
}

// The two sides of a binary node, when both are values.
std::optional<std::pair<ValueId, ValueId>> read_sides(Rewriter& rewriter, const Node& node) {
  const ValueId left = resolved(rewriter, node.argument("self"));
  const ValueId right = resolved(rewriter, node.argument("other"));
  if (left == ValueId::none || right == ValueId::none) return std::nullopt;
  return std::pair{left, right};
}

}  // namespace

bool has_unit_alpha(const Node& node) {
  const int alpha = node.op.argument_index("alpha");
  if (alpha < 0) return true;
  const Argument& value = node.arguments[static_cast<size_t>(alpha)];
  return value == Argument(1) || value == Argument(1.0);
}

std::optional<ScaledValue> match_scale(Rewriter& rewriter, const Argument& argument) {
  if (!argument.is_value()) return std::nullopt;
  const Node* node = rewriter.producer(argument.value());
  if (node == nullptr) return std::nullopt;
  if (node->is("aten::mul.Tensor") || node->is("aten::mul.Scalar")) return match_number(rewriter, *node, true);
  if (!node->is("aten::div.Tensor") && !node->is("aten::div.Scalar")) return std::nullopt;
  std::optional<ScaledValue> scaled = match_number(rewriter, *node, false);
  if (!scaled || scaled->number == 0) return std::nullopt;
  scaled->number = 1 / scaled->number;
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
  return node == nullptr ? std::nullopt : read_sides(rewriter, *node);
}

std::optional<std::pair<ValueId, ValueId>> match_sum(Rewriter& rewriter, const Argument& argument) {
  const Node* node = rewriter.producer(argument, "aten::add.Tensor");
  return node == nullptr || !has_unit_alpha(*node) ? std::nullopt : read_sides(rewriter, *node);
}

bool same_value(const Rewriter& rewriter, ValueId left, ValueId right) {
  return rewriter.resolve(Argument(left)) == rewriter.resolve(Argument(right));
}

std::optional<double> match_multiple(Rewriter& rewriter, ValueId value, ValueId base) {
  ScaledValue seen{value, 1};
  while (!same_value(rewriter, seen.value, base)) {
    const auto scaled = match_scale(rewriter, Argument(seen.value));
    if (!scaled) return std::nullopt;
    seen = {scaled->value, seen.number * scaled->number};
  }
  return seen.number;
}

ScaledValue strip_scales(Rewriter& rewriter, ValueId value) {
  ScaledValue stripped{value, 1};
  while (const auto scaled = match_scale(rewriter, Argument(stripped.value))) {
    stripped = {scaled->value, stripped.number * scaled->number};
  }
  return stripped;
}

bool is_closed(Rewriter& rewriter, const Node& last, std::initializer_list<ValueId> leaves) {
  std::set<ValueId> stop;
  for (const ValueId leaf : leaves) stop.insert(rewriter.resolve(Argument(leaf)).value());
  std::map<ValueId, int> reads;  // from inside, of values that nodes inside make
  std::set<const Node*> inside;
  std::vector<const Node*> pending = {&last};
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    if (inside.size() > kLargestPattern) return false;
    for (const Argument& argument : node->arguments) {
      for_each_value(rewriter.resolve(argument), [&](ValueId value) {
        const Node* producer = rewriter.producer(value);
        if (producer == nullptr || stop.contains(value)) return;
        ++reads[value];
        if (inside.insert(producer).second) pending.push_back(producer);
      });
    }
  }
  return std::all_of(reads.begin(), reads.end(),
                     [&](const auto& read) { return rewriter.use_count(read.first) == read.second; });
}

bool is_near(double number, double expected) { return std::abs(number - expected) <= 1e-6 * std::abs(expected); }

}  // namespace lissome

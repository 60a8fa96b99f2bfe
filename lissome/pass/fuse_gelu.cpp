// GELU (Hendrycks and Gimpel 2016) as people write it out: exactly, with erf, or approximately, with tanh. Every order
// of factors is tried; nothing in between may have another reader, else nothing would be saved.
#include <cmath>

#include "lissome/pass/match.h"
#include "lissome/pass/passes.h"

namespace lissome {
namespace {

constexpr double kCubic = 0.044715;

// number * x * x in any association; the number.
std::optional<double> match_square(Rewriter& rewriter, ValueId value, ValueId x) {
  const ScaledValue scaled = strip_scales(rewriter, value);
  const auto product = match_product(rewriter, Argument(scaled.value));
  if (!product) return std::nullopt;
  const auto left = match_multiple(rewriter, product->first, x), right = match_multiple(rewriter, product->second, x);
  if (!left || !right) return std::nullopt;
  return scaled.number * *left * *right;
}

// number * x * x * x in any association; the number.
std::optional<double> match_cube(Rewriter& rewriter, ValueId value, ValueId x) {
  const ScaledValue scaled = strip_scales(rewriter, value);
  if (const Node* power = rewriter.producer(Argument(scaled.value), "aten::pow.Tensor_Scalar")) {
    if (constant_number(rewriter, power->argument("exponent")) != 3.0) return std::nullopt;
    const auto base = match_multiple(rewriter, rewriter.resolve(power->argument("self")).value(), x);
    return base ? std::optional(scaled.number * std::pow(*base, 3)) : std::nullopt;
  }
  const auto product = match_product(rewriter, Argument(scaled.value));
  if (!product) return std::nullopt;
  for (const auto& [square, single] : {*product, std::pair{product->second, product->first}}) {
    const auto factor = match_square(rewriter, square, x), one = match_multiple(rewriter, single, x);
    if (factor && one) return scaled.number * *factor * *one;
  }
  return std::nullopt;
}

// sqrt(2/pi) (x + 0.044715 x^3), or sqrt(2/pi) x (1 + 0.044715 x^2).
bool is_tanh_argument(Rewriter& rewriter, ValueId value, ValueId x) {
  const double expected = std::sqrt(2 / M_PI);
  const ScaledValue outer = strip_scales(rewriter, value);
  if (const auto sum = match_sum(rewriter, Argument(outer.value))) {
    for (const auto& [linear, cubic] : {*sum, std::pair{sum->second, sum->first}}) {
      const auto one = match_multiple(rewriter, linear, x), three = match_cube(rewriter, cubic, x);
      if (one && three && is_near(outer.number * *one, expected) && is_near(*three, kCubic * *one)) return true;
    }
  }
  const auto product = match_product(rewriter, Argument(outer.value));
  if (!product) return false;
  for (const auto& [linear, gate] : {*product, std::pair{product->second, product->first}}) {
    const auto one = match_multiple(rewriter, linear, x);
    const auto offset = match_offset(rewriter, Argument(gate));
    if (!one || !offset || offset->number != 1 || !is_near(outer.number * *one, expected)) continue;
    const auto two = match_square(rewriter, offset->value, x);
    if (two && is_near(*two, kCubic)) return true;
  }
  return false;
}

// 1 + f(...) where f tells which GELU it is; "none", "tanh" or nothing.
std::optional<std::string> match_gate(Rewriter& rewriter, ValueId gate, ValueId x) {
  const auto offset = match_offset(rewriter, Argument(gate));
  if (!offset || offset->number != 1) return std::nullopt;
  if (const Node* erf = rewriter.producer(Argument(offset->value), "aten::erf")) {
    const auto scale = match_multiple(rewriter, rewriter.resolve(erf->argument("self")).value(), x);
    if (scale && is_near(*scale, std::sqrt(0.5))) return "none";
  }
  if (const Node* tanh = rewriter.producer(Argument(offset->value), "aten::tanh")) {
    if (is_tanh_argument(rewriter, rewriter.resolve(tanh->argument("self")).value(), x)) return "tanh";
  }
  return std::nullopt;
}

// (0.5 x) (1 + g), 0.5 (x (1 + g)), x (0.5 (1 + g)). x may itself be a multiple of something: each value along the
// chain of factors is tried.
bool rewrite_gelu(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::mul.Tensor") || !is_sized_float(rewriter.type_of(node.result()))) return false;
  const ScaledValue whole = strip_scales(rewriter, node.result());
  const auto product = match_product(rewriter, Argument(whole.value));
  if (!product) return false;
  for (const auto& [left, right] : {*product, std::pair{product->second, product->first}}) {
    const ScaledValue gate = strip_scales(rewriter, right);
    std::optional<ScaledValue> x = ScaledValue{left, 1};
    for (double factor = 1; x; x = match_scale(rewriter, Argument(x->value))) {
      factor *= x->number;
      if (!is_near(whole.number * factor * gate.number, 0.5)) continue;
      const auto approximate = match_gate(rewriter, gate.value, x->value);
      if (!approximate || !is_closed(rewriter, node, {x->value})) continue;
      rewriter.replace_node(position, Op::find("aten::gelu"), {x->value, *approximate});
      return true;
    }
  }
  return false;
}

}  // namespace

int fuse_gelu(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) rewrite_gelu(rewriter, position);
  return rewriter.finish();
}

}  // namespace lissome

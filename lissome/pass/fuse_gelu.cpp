// GELU (Hendrycks and Gimpel 2016) and SiLU, as people write them out. Every factor order is tried; the inner values may
// have no other reader, else nothing would be saved.
#include <array>
#include <cmath>

#include "lissome/pass/match.h"
#include "lissome/pass/passes.h"

namespace lissome {
namespace {

// The scale in front of a value: x * c1 * c2 ... collapses to (x, c1 c2 ...).
ScaledValue strip_scales(Rewriter& rewriter, ValueId value) {
  ScaledValue stripped{value, 1};
  while (const auto scaled = match_scale(rewriter, Argument(stripped.value))) {
    stripped = {scaled->value, stripped.number * scaled->number};
  }
  return stripped;
}

// tanh(sqrt(2/pi) (x + 0.044715 x^3)) of x.
bool is_tanh_argument(Rewriter& rewriter, ValueId value, ValueId x) {
  const ScaledValue outer = strip_scales(rewriter, value);
  if (!is_near(outer.number, std::sqrt(2 / M_PI))) return false;
  const auto sum = match_sum(rewriter, Argument(outer.value));
  if (!sum) return false;
  for (const auto& [linear, cubic] : {*sum, std::pair{sum->second, sum->first}}) {
    if (!same_value(rewriter, linear, x)) continue;
    const ScaledValue scaled = strip_scales(rewriter, cubic);
    if (!is_near(scaled.number, 0.044715)) continue;
    if (const Node* power = rewriter.producer(Argument(scaled.value), "aten::pow.Tensor_Scalar")) {
      if (constant_number(rewriter.program(), power->argument("exponent")) == 3.0 &&
          same_value(rewriter, power->argument("self").value(), x)) {
        return true;
      }
    }
    // x * x * x in either association.
    if (const auto product = match_product(rewriter, Argument(scaled.value))) {
      for (const auto& [square, single] : {*product, std::pair{product->second, product->first}}) {
        const auto inner = match_product(rewriter, Argument(square));
        if (same_value(rewriter, single, x) && inner && same_value(rewriter, inner->first, x) &&
            same_value(rewriter, inner->second, x)) {
          return true;
        }
      }
    }
  }
  return false;
}

// 1 + f(...) where f tells which GELU it is; returns "none", "tanh" or nothing.
std::optional<std::string> match_gate(Rewriter& rewriter, ValueId gate, ValueId x) {
  const auto offset = match_offset(rewriter, Argument(gate));
  if (!offset || offset->number != 1) return std::nullopt;
  if (const Node* erf = rewriter.producer(Argument(offset->value), "aten::erf")) {
    const ScaledValue scaled = strip_scales(rewriter, rewriter.resolve(erf->argument("self")).value());
    if (is_near(scaled.number, std::sqrt(0.5)) && same_value(rewriter, scaled.value, x)) return "none";
  }
  if (const Node* tanh = rewriter.producer(Argument(offset->value), "aten::tanh")) {
    if (is_tanh_argument(rewriter, rewriter.resolve(tanh->argument("self")).value(), x)) return "tanh";
  }
  return std::nullopt;
}

// The factors of a product tree of at most three values and any numbers: (0.5 x) (1 + g), 0.5 (x (1 + g)), x (0.5 (1 + g)).
bool rewrite_gelu(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::mul.Tensor") && !node.is("aten::mul.Scalar") && !node.is("aten::div.Tensor")) return false;
  const ScaledValue whole = strip_scales(rewriter, node.result());
  const auto product = match_product(rewriter, Argument(whole.value));
  if (!product) return false;
  for (const auto& [left, right] : {*product, std::pair{product->second, product->first}}) {
    const ScaledValue x = strip_scales(rewriter, left);
    const ScaledValue gate = strip_scales(rewriter, right);
    if (!is_near(whole.number * x.number * gate.number, 0.5)) continue;
    // x may itself be a scaled value whose scale belongs to it: then the gate names the unscaled one.
    const auto approximate = match_gate(rewriter, gate.value, x.value);
    if (!approximate) continue;
    rewriter.replace_node(position, Op::find("aten::gelu"), {x.value, *approximate});
    return true;
  }
  return false;
}

}  // namespace

int fuse_gelu(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) rewrite_gelu(rewriter, position);
  return rewriter.finish();
}

int fuse_silu(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    const Node& node = rewriter.node(position);
    if (!node.is("aten::mul.Tensor")) continue;
    const auto product = match_product(rewriter, Argument(node.result()));
    if (!product) continue;
    for (const auto& [x, gate] : {*product, std::pair{product->second, product->first}}) {
      const Node* sigmoid = rewriter.producer(Argument(gate), "aten::sigmoid");
      if (sigmoid == nullptr || !rewriter.has_one_use(gate)) continue;
      if (!same_value(rewriter, sigmoid->argument("self").value(), x)) continue;
      rewriter.replace_node(position, Op::find("aten::silu"), {x});
      break;
    }
  }
  return rewriter.finish();
}

}  // namespace lissome

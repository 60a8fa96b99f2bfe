// Cheaper arithmetic for the same numbers, within an ulp.
#include <cmath>

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

// Beyond these the inverse leaves f32's normal numbers.
constexpr double kSmallestDivisor = 1e-30, kLargestDivisor = 1e30;

// Reads and makes the same floating dtype and sizes: no promotion, no broadcast.
bool stays_float(Rewriter& rewriter, const Node& node, const Argument& input) {
  const ValueType& type = rewriter.type_of(node.result());
  return is_sized_float(type) && rewriter.type_of(input) == type;
}

// 1/c is rounded once and the product once more: within an ulp of the quotient. Powers of two are exact.
bool convert_division(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::div.Tensor")) return false;
  const Argument self = rewriter.resolve(node.argument("self"));
  const auto divisor = constant_number(rewriter, rewriter.resolve(node.argument("other")));
  if (!divisor || !stays_float(rewriter, node, self)) return false;
  if (!(std::abs(*divisor) >= kSmallestDivisor && std::abs(*divisor) <= kLargestDivisor)) return false;
  rewriter.replace_node(position, Op::find("aten::mul.Tensor"), {self, 1 / *divisor});
  return true;
}

bool convert_power(Rewriter& rewriter, int position) {
  const Node node = rewriter.node(position);
  const bool square = node.is("aten::square");
  if (!square && !node.is("aten::pow.Tensor_Scalar")) return false;
  const Argument self = rewriter.resolve(node.argument("self"));
  if (!stays_float(rewriter, node, self)) return false;
  const auto exponent = square ? 2.0 : constant_number(rewriter, node.argument("exponent"));
  if (!exponent) return false;
  const Op multiply = Op::find("aten::mul.Tensor");
  if (*exponent == 2) {
    rewriter.replace_node(position, multiply, {self, self});
  } else if (*exponent == 3 || *exponent == 4) {
    const ValueType type = rewriter.type_of(node.result());
    const ValueId product = rewriter.insert_before(position, multiply, {self, self}, {type}, node.origin);
    rewriter.replace_node(position, multiply, {product, *exponent == 3 ? self : Argument(product)});
  } else if (*exponent == -1) {
    rewriter.replace_node(position, Op::find("aten::reciprocal"), {self});
  } else if (*exponent == -0.5) {
    rewriter.replace_node(position, Op::find("aten::rsqrt"), {self});
  } else if (*exponent == 0.5) {
    rewriter.replace_node(position, Op::find("aten::sqrt"), {self});
  } else {
    return false;
  }
  return true;
}

}  // namespace

int simplify_arithmetic(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    convert_division(rewriter, position) || convert_power(rewriter, position);
  }
  return rewriter.finish();
}

}  // namespace lissome

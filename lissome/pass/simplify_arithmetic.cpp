// Cheaper arithmetic for the same numbers, within an ulp. An ulp is a whole step where the number is rounded, compared
// or made an integer afterwards: there only what is exact changes.
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
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

constexpr std::array kSteps = {"aten::floor",
                               "aten::ceil",
                               "aten::trunc",
                               "aten::round",
                               "aten::frac",
                               "aten::fix",
                               "aten::sign",
                               "aten::sgn",
                               "aten::heaviside",
                               "aten::floor_divide",
                               "aten::remainder",
                               "aten::fmod",
                               "aten::fake_quantize_per_tensor_affine",
                               "aten::fake_quantize_per_channel_affine",
                               "aten::_fake_quantize_learnable_per_tensor_affine",
                               "aten::_fake_quantize_learnable_per_channel_affine"};
constexpr size_t kMostLookedAt = 32;  // values that are looked at

// Makes a step where its input moves by an ulp: rounds, or gives integers and truths for floats.
bool is_step(const Program& program, const Node& node) {
  const std::string_view name = std::string_view(node.op.name()).substr(0, node.op.name().find('.'));
  if (std::find(kSteps.begin(), kSteps.end(), name) != kSteps.end()) return true;
  if (name == "aten::div" && node.op.argument_index("rounding_mode") >= 0) return true;
  return std::any_of(node.results.begin(), node.results.end(), [&](ValueId result) {
    return result != ValueId::none && program.value(result).type.kind == ValueKind::tensor &&
           (is_integral(program.value(result).type.dtype) || program.value(result).type.dtype == Dtype::boolean);
  });
}

// Element by element, or just another look at the elements.
bool passes_elements(const Program& program, const Node& node) {
  return node.op.has_schema() && (node.op.handle().hasTag(at::Tag::pointwise) || find_effects(program, node).may_alias);
}

bool leads_to_step(Rewriter& rewriter, ValueId value) {
  std::vector<ValueId> pending = {value};
  for (size_t next = 0; next < pending.size(); ++next) {
    if (next == kMostLookedAt) return true;
    for (const int reader : rewriter.readers(pending[next])) {
      const Node& node = rewriter.node(reader);
      if (is_step(rewriter.program(), node)) return true;
      if (!passes_elements(rewriter.program(), node)) continue;
      for (const ValueId result : node.results) {
        if (result != ValueId::none) pending.push_back(result);
      }
    }
  }
  return false;
}

bool is_power_of_two(double number) {
  int exponent = 0;
  return std::abs(std::frexp(number, &exponent)) == 0.5;
}

// 1/c is rounded once and the product once more: within an ulp of the quotient. Powers of two are exact.
bool convert_division(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::div.Tensor")) return false;
  const Argument self = rewriter.resolve(node.argument("self"));
  const auto divisor = constant_number(rewriter, rewriter.resolve(node.argument("other")));
  if (!divisor || !stays_float(rewriter, node, self)) return false;
  if (!(std::abs(*divisor) >= kSmallestDivisor && std::abs(*divisor) <= kLargestDivisor)) return false;
  if (!is_power_of_two(*divisor) && leads_to_step(rewriter, node.result())) return false;
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
  } else if (leads_to_step(rewriter, node.result())) {
    return false;
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

#include <cmath>

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

bool makes_float(const Program& program, const Node& node) {
  const ValueType& type = program.value(node.result()).type;
  return type.kind == ValueKind::tensor && type.sized && is_floating(type.dtype);
}

bool reads_float(const Program& program, const Argument& argument) {
  if (!argument.is_value()) return false;
  const ValueType& type = program.value(argument.value()).type;
  return type.kind == ValueKind::tensor && type.sized && is_floating(type.dtype);
}

// 1/c is rounded once and the product once more: within an ulp of the quotient. Powers of two are exact.
bool convert_division(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::div.Tensor") && !node.is("aten::div.Scalar")) return false;
  const Argument other = node.argument("other");
  std::optional<double> divisor;
  if (const auto* integer = other.get<int64_t>()) divisor = static_cast<double>(*integer);
  if (const auto* number = other.get<double>()) divisor = *number;
  // A constant of no dimension cannot broadcast the result to more dimensions.
  const at::Tensor tensor = constant_tensor(rewriter.program(), other);
  if (tensor.defined() && tensor.dim() == 0) divisor = constant_number(rewriter.program(), other);
  if (!divisor || *divisor == 0 || !std::isfinite(1 / *divisor)) return false;
  if (!makes_float(rewriter.program(), node) || !reads_float(rewriter.program(), node.argument("self"))) return false;
  rewriter.replace_node(position, Op::find("aten::mul.Scalar"), {node.argument("self"), 1 / *divisor});
  return true;
}

bool convert_power(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::pow.Tensor_Scalar") || !makes_float(rewriter.program(), node)) return false;
  const Argument self = node.argument("self");
  if (!reads_float(rewriter.program(), self)) return false;
  const std::optional<double> exponent = constant_number(rewriter.program(), node.argument("exponent"));
  if (!exponent) return false;
  const Op multiply = Op::find("aten::mul.Tensor");
  const ValueType type = rewriter.program().value(node.result()).type;
  if (*exponent == 2) {
    rewriter.replace_node(position, multiply, {self, self});
  } else if (*exponent == 3 || *exponent == 4) {
    const ValueId square = rewriter.insert_before(position, multiply, {self, self}, {type}, node.origin);
    rewriter.replace_node(position, multiply, {square, *exponent == 3 ? self : Argument(square)});
  } else if (*exponent == -1) {
    rewriter.replace_node(position, Op::find("aten::reciprocal"), {self});
  } else if (*exponent == -0.5) {
    rewriter.replace_node(position, Op::find("aten::rsqrt"), {self});
  } else {
    return false;  // pow(x, 0.5) stays: it gives +0 for -0 and inf for -inf where sqrt gives -0 and nan
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

// Element-wise nodes on our own kernels, any broadcast: activations, arithmetic, comparisons, choices, casts and fills.
// Floats and flags run on registers of f32; what must stay an integer runs on registers of i64.
#include <c10/util/BFloat16.h>

#include <algorithm>
#include <cmath>

#include "lissome/lower/candidate/elementwise/elementwise_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/lower/fuse/compose_elementwise.h"

namespace lissome {
namespace {

struct Row {
  std::string_view op;
  std::string_view operation;  // of the kernel; empty: the result is the first operand in another dtype
  std::string_view operands;   // names of arguments, values or numbers, in the order of the instruction
};
constexpr Row kRows[] = {
    {"aten::relu", "relu", "self"},
    {"aten::sigmoid", "sigmoid", "self"},
    {"aten::tanh", "tanh", "self"},
    {"aten::silu", "silu", "self"},
    {"aten::gelu", "gelu", "self"},
    {"aten::hardswish", "hardswish", "self"},
    {"aten::hardsigmoid", "hardsigmoid", "self"},
    {"aten::neg", "negate", "self"},
    {"aten::abs", "absolute", "self"},
    {"aten::exp", "exponential", "self"},
    {"aten::sin", "sine", "self"},
    {"aten::cos", "cosine", "self"},
    {"aten::sqrt", "square_root", "self"},
    {"aten::rsqrt", "reciprocal_root", "self"},
    {"aten::reciprocal", "reciprocal", "self"},
    {"aten::erf", "error_function", "self"},
    {"aten::floor", "floor", "self"},
    {"aten::round", "round", "self"},
    {"aten::log", "logarithm", "self"},
    {"aten::leaky_relu", "leaky_relu", "self"},
    {"aten::elu", "elu", "self"},
    {"aten::relu6", "relu6", "self"},
    {"aten::mish", "mish", "self"},
    {"aten::softplus", "softplus", "self"},
    {"aten::log_sigmoid", "log_sigmoid", "self"},
    {"aten::selu", "selu", "self"},
    {"aten::celu", "celu", "self"},
    {"aten::prelu", "prelu", "self weight"},
    {"aten::hardshrink", "hardshrink", "self"},
    {"aten::softshrink", "softshrink", "self"},
    {"aten::threshold", "threshold", "self threshold value"},
    {"aten::log1p", "log1p", "self"},
    {"aten::expm1", "expm1", "self"},
    {"aten::ceil", "ceil", "self"},
    {"aten::trunc", "trunc", "self"},
    {"aten::sign", "sign", "self"},
    {"aten::isnan", "isnan", "self"},
    {"aten::lerp.Scalar", "lerp", "self end weight"},
    {"aten::addcmul", "addcmul", "self tensor1 tensor2"},
    {"aten::addcdiv", "addcdiv", "self tensor1 tensor2"},
    {"aten::square", "square", "self"},
    {"aten::add.Tensor", "add", "self other"},
    {"aten::add.Scalar", "add", "self other"},
    {"aten::sub.Tensor", "subtract", "self other"},
    {"aten::sub.Scalar", "subtract", "self other"},
    {"aten::rsub.Scalar", "subtract", "other self"},
    {"aten::mul.Tensor", "multiply", "self other"},
    {"aten::mul.Scalar", "multiply", "self other"},
    {"aten::div.Tensor", "divide", "self other"},
    {"aten::div.Scalar", "divide", "self other"},
    {"aten::maximum", "maximum", "self other"},
    {"aten::minimum", "minimum", "self other"},
    {"aten::pow.Tensor_Scalar", "power", "self exponent"},
    {"aten::pow.Tensor_Tensor", "power", "self exponent"},
    {"aten::clamp_min", "maximum", "self min"},
    {"aten::clamp_max", "minimum", "self max"},
    {"aten::clamp", "clamp", "self min max"},
    {"aten::hardtanh", "clamp", "self min_val max_val"},
    {"aten::eq.Tensor", "equal", "self other"},
    {"aten::eq.Scalar", "equal", "self other"},
    {"aten::ne.Tensor", "unequal", "self other"},
    {"aten::ne.Scalar", "unequal", "self other"},
    {"aten::lt.Tensor", "less", "self other"},
    {"aten::lt.Scalar", "less", "self other"},
    {"aten::le.Tensor", "less_equal", "self other"},
    {"aten::le.Scalar", "less_equal", "self other"},
    {"aten::gt.Tensor", "less", "other self"},
    {"aten::gt.Scalar", "less", "other self"},
    {"aten::ge.Tensor", "less_equal", "other self"},
    {"aten::ge.Scalar", "less_equal", "other self"},
    {"aten::logical_not", "logical_not", "self"},
    {"aten::logical_and", "logical_and", "self other"},
    {"aten::logical_or", "logical_or", "self other"},
    {"aten::bitwise_not", "logical_not", "self"},
    {"aten::bitwise_and.Tensor", "logical_and", "self other"},
    {"aten::bitwise_or.Tensor", "logical_or", "self other"},
    {"aten::__and__.Tensor", "logical_and", "self other"},
    {"aten::__or__.Tensor", "logical_or", "self other"},
    {"aten::where.self", "select", "condition self other"},
    {"aten::where.ScalarOther", "select", "condition self other"},
    {"aten::where.ScalarSelf", "select", "condition self other"},
    {"aten::where.Scalar", "select", "condition self other"},
    {"aten::masked_fill.Scalar", "select", "mask value self"},
    {"aten::masked_fill.Tensor", "select", "mask value self"},
    {"aten::gelu_backward", "slope gelu", "grad_output self"},
    {"aten::silu_backward", "slope silu", "grad_output self"},
    {"aten::tanh_backward", "tanh_gradient", "grad_output output"},
    {"aten::sigmoid_backward", "sigmoid_gradient", "grad_output output"},
    {"aten::threshold_backward", "threshold_gradient", "grad_output self threshold"},
    {"aten::scalar_tensor", "constant", "s"},
    {"aten::to.dtype", "", "self"},
    {"aten::_to_copy", "", "self"},
    {"aten::to.dtype_layout", "", "self"},
    {"aten::full", "constant", "fill_value"},
    {"aten::full_like", "constant", "fill_value"},
    {"aten::new_full", "constant", "fill_value"},
    {"aten::zeros", "zeros", ""},
    {"aten::zeros_like", "zeros", ""},
    {"aten::new_zeros", "zeros", ""},
    {"aten::ones", "ones", ""},
    {"aten::ones_like", "ones", ""},
    {"aten::new_ones", "ones", ""},
    {"aten::arange", "position", ""},
    {"aten::arange.start", "position", ""},
    {"aten::arange.start_step", "position", ""},
};

// What one node asks for.
struct Request {
  std::string_view operation;
  std::vector<const Argument*> operands;
};

Request read_request(const Node& node) {
  Request request;
  for (const Row& row : kRows) {
    if (!node.is(row.op)) continue;
    request.operation = row.operation;
    for (std::string_view rest = row.operands; !rest.empty();) {
      const size_t end = std::min(rest.find(' '), rest.size());
      request.operands.push_back(&node.argument(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return request;
}

bool is_number(const Argument& argument) {
  return argument.get<double>() || argument.get<int64_t>() || argument.get<bool>();
}

// Whether the node must run on registers of i64: integers go in, and integers or flags come out of them.
bool needs_integers(const PlanBuilder& builder, const Node& node, const Request& request) {
  const Dtype result = builder.type(node.result()).dtype;
  const bool whole_result = is_integer_dtype(result);
  if (request.operands.empty() || request.operation == "constant") return whole_result && result != Dtype::boolean;
  bool integers = false;
  for (const Argument* operand : request.operands) {
    if (!operand->is_value()) continue;
    const Dtype dtype = builder.type(operand->value()).dtype;
    if (!is_integer_dtype(dtype)) return false;
    integers = integers || dtype != Dtype::boolean;
  }
  if (request.operation.empty()) return integers && whole_result && result != Dtype::boolean;
  return whole_result && (integers || result != Dtype::boolean);
}

std::string refuse_operand(const PlanBuilder& builder, const Argument& operand, bool integers) {
  if (is_number(operand)) {
    const double number = read_literal(operand);
    if (!integers) return {};
    if (number != std::floor(number)) return "a number is not whole";
    return std::fabs(number) <= 1 << 24 ? "" : "a number is beyond 2^24";
  }
  if (!operand.is_value()) return "an operand is neither tensor nor number";
  const Dtype dtype = builder.type(operand.value()).dtype;
  const bool known = is_integer_dtype(dtype) || (!integers && (dtype == Dtype::f32 || dtype == Dtype::bf16));
  if (!known) return "an operand is " + std::string(dtype_name(dtype));
  return refuse_tensor(builder, operand, dtype);
}

// ATen casts a number to the dtype of the integers that it meets, where -1 is the 255 of bytes.
std::string refuse_wrapped(const PlanBuilder& builder, const Request& request) {
  for (const Argument* operand : request.operands) {
    if (!operand->is_value()) continue;
    const Dtype dtype = builder.type(operand->value()).dtype;
    if (!is_integer_dtype(dtype) || dtype == Dtype::boolean || dtype == Dtype::i64) continue;
    for (const Argument* other : request.operands) {
      const double literal = is_number(*other) ? read_literal(*other) : 0;
      if (!(std::fabs(literal) <= 1 << 24)) continue;  // refused as an operand
      const auto number = static_cast<int64_t>(literal);
      bool fits = true;
      dispatch(dtype, [&]<typename T>() {
        if constexpr (std::is_integral_v<T>) fits = static_cast<int64_t>(static_cast<T>(number)) == number;
      });
      if (!fits) return "a number is beyond " + std::string(dtype_name(dtype));
    }
  }
  return {};
}

// The literals of arange that are not in the result's sizes.
std::string refuse_position(const Node& node) {
  for (const char* name : {"start", "step"}) {
    const int index = node.op.argument_index(name);
    if (index < 0) continue;
    const double number = read_literal(node.arguments[static_cast<size_t>(index)]);
    if (number != std::floor(number) || std::fabs(number) > 1 << 24) return "start or step are computed, or not whole";
  }
  return {};
}

// Whether an operation is composed of several instructions, with literal numbers among them.
bool composes_numbers(std::string_view operation) {
  static constexpr std::string_view kNames[] = {"elu",        "softplus",  "selu", "celu",    "hardshrink",
                                                "softshrink", "threshold", "lerp", "addcmul", "addcdiv"};
  return std::find(std::begin(kNames), std::end(kNames), operation) != std::end(kNames);
}

// Slopes are laid along dimension 1.
std::string refuse_slopes(const PlanBuilder& builder, const Node& node) {
  const Argument& weight = node.argument("weight");
  if (!weight.is_value() || !builder.constant(weight.value())) return "the slopes are computed";
  if (builder.type(node.argument("self").value()).sizes.size() < 2) return "x has no channels";
  return {};
}

// A number is rounded to bf16 before it is compared with what is bf16.
std::string refuse_compared(const PlanBuilder& builder, const Request& request) {
  const auto op = parse_element_op(request.operation);
  if (!op || *op < ElementOp::equal || *op > ElementOp::less_equal) return {};
  const auto rounds = [&](const Argument* operand) {
    return operand->is_value() && builder.type(operand->value()).dtype == Dtype::bf16;
  };
  if (std::none_of(request.operands.begin(), request.operands.end(), rounds)) return {};
  for (const Argument* operand : request.operands) {
    const double number = operand->is_value() ? 0 : read_literal(*operand);
    if (static_cast<double>(c10::BFloat16(static_cast<float>(number))) != number) return "a number is no bf16";
  }
  return {};
}

// Forms of ops that we do not know.
std::string refuse_form(const PlanBuilder& builder, const Node& node, const Request& request, bool integers) {
  if (node.op.argument_index("approximate") >= 0 && !node.argument("approximate").get<std::string>())
    return "the form is computed";
  if (node.is("aten::elu") && read_optional_number(node, "input_scale", 1) != 1) return "its input is scaled";
  if (node.is("aten::prelu")) {
    const std::string refusal = refuse_slopes(builder, node);
    if (!refusal.empty()) return refusal;
  }
  for (const char* name : {"alpha", "scale", "beta", "threshold", "lambd", "value", "weight"}) {
    const int index = composes_numbers(request.operation) ? node.op.argument_index(name) : -1;
    if (index >= 0 && !is_number(node.arguments[static_cast<size_t>(index)])) return std::string(name) + " is computed";
  }
  if (node.is("aten::leaky_relu")) {
    if (!is_number(node.argument("negative_slope"))) return "the slope is computed";
    if (!std::isfinite(read_literal(node.argument("negative_slope")))) return "the slope is not finite";
  }
  if (request.operation == "celu") {
    const double alpha = read_optional_number(node, "alpha", 1);
    if (!(alpha > 0) || !std::isfinite(alpha)) return "alpha is not above 0";  // the curve is composed with 1 / alpha
  }
  if (integers) {
    if (const std::string refusal = refuse_wrapped(builder, request); !refusal.empty()) return refusal;
  }
  const Dtype result = builder.type(node.result()).dtype;
  const bool logical = request.operation.starts_with("logical_");
  if (logical && !node.op.name().starts_with("aten::logical") && result != Dtype::boolean) return "it works on bits";
  if (request.operation == "subtract" && result == Dtype::boolean) return "flags are not subtracted";
  if (request.operation == "position") return refuse_position(node);
  if (const std::string refusal = refuse_compared(builder, request); !refusal.empty()) return refusal;
  static const std::string_view kIntegers[] = {
      "negate",  "absolute", "square",  "add",  "subtract",    "multiply",    "maximum",
      "minimum", "equal",    "unequal", "less", "less_equal",  "select",      "constant",
      "zeros",   "ones",     "clamp",   "",     "logical_not", "logical_and", "logical_or"};
  const bool known = std::find(std::begin(kIntegers), std::end(kIntegers), request.operation) != std::end(kIntegers);
  if (integers && !known) return "there is no such operation on integers";
  const bool floats_result = result == Dtype::f32 || result == Dtype::bf16 || result == Dtype::boolean;
  // A cast truncates as it stores; nothing else makes integers on registers of f32.
  if (!integers && !floats_result && !(request.operation.empty() && is_integer_dtype(result))) {
    return "the result is " + std::string(dtype_name(result));
  }
  return {};
}

}  // namespace

std::string refuse_elementwise(const PlanBuilder& builder, const Node& node) {
  const Request request = read_request(node);
  const ValueType& type = builder.type(node.result());
  std::string refusal = refuse_tensor(builder, Argument(node.result()), type.dtype);
  if (!refusal.empty()) return refusal;
  const bool integers = needs_integers(builder, node, request);
  refusal = refuse_form(builder, node, request, integers);
  bool all_held = !request.operands.empty();
  for (size_t i = 0; i < request.operands.size(); ++i) {
    const Argument& operand = *request.operands[i];
    if (request.operation == "clamp" && i > 0 && operand.is_none()) continue;
    if (refusal.empty()) refusal = refuse_operand(builder, operand, integers);
    const ValueId value = operand.is_value() ? operand.value() : ValueId::none;
    all_held = all_held && (!operand.is_value() || (builder.is_held(value) && !is_drawn(builder, value)));
  }
  if (!refusal.empty()) return refusal;
  if (all_held && request.operation != "constant") return "the reference library holds all operands";
  const int alpha = node.op.argument_index("alpha");
  if (alpha >= 0) refusal = refuse_operand(builder, node.arguments[static_cast<size_t>(alpha)], integers);
  if (alpha >= 0 && !is_number(node.arguments[static_cast<size_t>(alpha)])) return "alpha is computed";
  if (!refusal.empty()) return refusal;
  return type.sizes.size() <= 5 ? "" : "more than 5 dimensions";
}

void emit_elementwise(PlanBuilder& builder, const Node& node) {
  const Request request = read_request(node);
  compose_elementwise(builder, node, request.operation, request.operands, needs_integers(builder, node, request));
}

}  // namespace lissome

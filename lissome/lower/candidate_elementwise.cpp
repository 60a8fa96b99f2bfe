// Element-wise nodes on our own kernels, any broadcast: activations, arithmetic, comparisons, choices, casts and fills.
// Floats and flags run on registers of f32; what must stay an integer runs on registers of i64.
#include <c10/util/BFloat16.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lissome/lower/candidate_rows.h"
#include "lissome/lower/refusals.h"

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

// NaN for what is no literal number.
double number_of(const Argument& argument) {
  if (const auto* flag = argument.get<bool>()) return *flag ? 1 : 0;
  if (argument.get<double>() || argument.get<int64_t>()) return read_number(argument);
  return std::nan("");
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
    const double number = number_of(operand);
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

// The literals of arange that are not in the result's sizes.
std::string refuse_position(const Node& node) {
  for (const char* name : {"start", "step"}) {
    const int index = node.op.argument_index(name);
    if (index < 0) continue;
    const double number = number_of(node.arguments[static_cast<size_t>(index)]);
    if (number != std::floor(number) || std::fabs(number) > 1 << 24) return "start or step are computed, or not whole";
  }
  return {};
}

double optional_number(const Node& node, std::string_view name, double fallback) {
  const int index = node.op.argument_index(name);
  return index < 0 ? fallback : number_of(node.arguments[static_cast<size_t>(index)]);
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
    const double number = operand->is_value() ? 0 : number_of(*operand);
    if (static_cast<double>(c10::BFloat16(static_cast<float>(number))) != number) return "a number is no bf16";
  }
  return {};
}

// Forms of ops that we do not know.
std::string refuse_form(const PlanBuilder& builder, const Node& node, const Request& request, bool integers) {
  if (node.op.argument_index("approximate") >= 0 && !node.argument("approximate").get<std::string>())
    return "the form is computed";
  if (node.is("aten::elu") && (optional_number(node, "scale", 1) != 1 || optional_number(node, "input_scale", 1) != 1))
    return "it is scaled";
  if (node.is("aten::leaky_relu") && !is_number(node.argument("negative_slope"))) return "the slope is computed";
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

namespace {

std::string find_gelu_form(const Node& node) {
  return *node.argument("approximate").get<std::string>() == "tanh" ? "gelu_tanh" : "gelu";
}

// Writes the instructions of one step.
class Composer {
 public:
  Composer(PlanBuilder& builder, const Node& node) : builder_(builder), node_(node) { step.kernel = "elementwise"; }

  int load(const Argument& operand) {
    if (!operand.is_value()) return constant(number_of(operand));
    const int position = static_cast<int>(step.operands.size());
    step.operands.push_back(builder_.use(operand));
    const bool whole = builder_.type(operand.value()).sizes == builder_.type(node_.result()).sizes;
    if (whole && builder_.format(operand.value()) == Format::channels_last) format = Format::channels_last;
    return run("load", position);
  }
  int constant(double number) { return run("constant", 0, 0, 0, number); }
  int run(std::string_view operation, int a, int b = 0, int c = 0, double alpha = 0, double beta = 0) {
    const int target = next_++;
    program_.push_back(std::string(operation) + " " + std::to_string(target) + " " + std::to_string(a) + " " +
                       std::to_string(b) + " " + std::to_string(c) + " " + format_number(alpha) + " " +
                       format_number(beta));
    return target;
  }

  void finish(bool integers) {
    step.attributes.set("program", std::move(program_));
    if (integers) step.attributes.set("integers", int64_t{1});
    step.results = {builder_.make(node_.result(), Storage::arena, format)};
    builder_.add_step(std::move(step), node_);
  }

  PlanStep step;
  Format format = Format::row_major;

 private:
  static std::string format_number(double number) {
    char text[32];
    return std::string(text, std::to_chars(text, text + sizeof(text), number).ptr);
  }

  PlanBuilder& builder_;
  const Node& node_;
  std::vector<std::string> program_;
  int next_ = 0;
};

// Gradients, from that of the result and what the operation read or gave. False for another operation.
bool compose_gradient(Composer& composer, const Node& node, std::string_view operation, const std::vector<int>& from) {
  if (operation.starts_with("slope ")) {
    const bool gelu = operation == "slope gelu";
    const auto activation = parse_activation(gelu ? find_gelu_form(node) : std::string(operation.substr(6)));
    composer.run("multiply", from[0], composer.run("slope", from[1], static_cast<int>(*activation)));
  } else if (operation == "tanh_gradient") {
    const int rest = composer.run("subtract", composer.constant(1), composer.run("square", from[1]));
    composer.run("multiply", from[0], rest);
  } else if (operation == "sigmoid_gradient") {
    const int rest = composer.run("subtract", composer.constant(1), from[1]);
    composer.run("multiply", composer.run("multiply", from[0], rest), from[1]);
  } else if (operation == "threshold_gradient") {
    composer.run("select", composer.run("less_equal", from[1], from[2]), composer.constant(0), from[0]);
  } else {
    return false;
  }
  return true;
}

void compose(Composer& composer, const Node& node, const Request& request) {
  std::string operation(request.operation);
  if (operation == "zeros" || operation == "ones") {
    composer.constant(operation == "ones" ? 1 : 0);
    return;
  }
  if (operation == "position") {
    composer.run("position", 0, 0, 0, optional_number(node, "start", 0), optional_number(node, "step", 1));
    return;
  }
  std::vector<int> registers;
  for (const Argument* operand : request.operands) {
    registers.push_back(operand->is_none() ? -1 : composer.load(*operand));
  }
  if (operation.empty() || operation == "constant") return;
  if (compose_gradient(composer, node, operation, registers)) return;
  if (operation == "clamp") {
    int x = registers[0];
    if (registers[1] >= 0) x = composer.run("maximum", x, registers[1]);
    if (registers[2] >= 0) composer.run("minimum", x, registers[2]);
    return;
  }
  const double alpha = optional_number(node, "alpha", 1);
  if (alpha != 1 && registers.size() == 2) {
    // What is added or taken away is scaled.
    registers[1] = composer.run("multiply", registers[1], composer.constant(alpha));
  }
  if (operation == "gelu") operation = find_gelu_form(node);
  if (operation == "power" && number_of(*request.operands[1]) == 2) {
    composer.run("square", registers[0]);
  } else if (const auto activation = parse_activation(operation)) {
    const double slope = optional_number(node, operation == "elu" ? "alpha" : "negative_slope", 0);
    composer.run("activate", registers[0], static_cast<int>(*activation), 0, slope);
  } else {
    registers.resize(3, 0);
    composer.run(operation, registers[0], registers[1], registers[2]);
  }
}

}  // namespace

void emit_elementwise(PlanBuilder& builder, const Node& node) {
  const Request request = read_request(node);
  Composer composer(builder, node);
  compose(composer, node, request);
  composer.finish(needs_integers(builder, node, request));
}

}  // namespace lissome

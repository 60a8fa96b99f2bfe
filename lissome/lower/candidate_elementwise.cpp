// Element-wise nodes on our own kernel, any broadcast; activations, arithmetic, comparisons and casts.
#include <array>
#include <charconv>
#include <optional>

#include "lissome/lower/candidate_rows.h"
#include "lissome/lower/refusals.h"

namespace lissome {
namespace {

struct Row {
  std::string_view op, operation;
  int operands;
};
// "activate" stands before an activation's name.
constexpr Row kRows[] = {
    {"aten::relu", "relu", 1},
    {"aten::sigmoid", "sigmoid", 1},
    {"aten::tanh", "tanh", 1},
    {"aten::silu", "silu", 1},
    {"aten::gelu", "gelu", 1},
    {"aten::hardswish", "hardswish", 1},
    {"aten::hardsigmoid", "hardsigmoid", 1},
    {"aten::neg", "negate", 1},
    {"aten::abs", "absolute", 1},
    {"aten::exp", "exponential", 1},
    {"aten::sqrt", "square_root", 1},
    {"aten::rsqrt", "reciprocal_root", 1},
    {"aten::reciprocal", "reciprocal", 1},
    {"aten::erf", "error_function", 1},
    {"aten::add.Tensor", "add", 2},
    {"aten::sub.Tensor", "subtract", 2},
    {"aten::mul.Tensor", "multiply", 2},
    {"aten::div.Tensor", "divide", 2},
    {"aten::maximum", "maximum", 2},
    {"aten::minimum", "minimum", 2},
};

const Row* find_row(const Node& node) {
  for (const Row& row : kRows) {
    if (node.is(row.op)) return &row;
  }
  return nullptr;
}

std::string format_number(double number) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), number).ptr);
}

std::string instruction(std::string_view operation, int target, int a, int b, double alpha = 0) {
  return std::string(operation) + " " + std::to_string(target) + " " + std::to_string(a) + " " + std::to_string(b) +
         " 0 " + format_number(alpha) + " 0";
}

bool is_number(const Argument& argument) { return argument.get<double>() || argument.get<int64_t>(); }

std::string refuse_operand(const PlanBuilder& builder, const Argument& operand) {
  return is_number(operand) ? std::string() : refuse_tensor(builder, operand, Dtype::f32);
}

}  // namespace

std::string refuse_elementwise(const PlanBuilder& builder, const Node& node) {
  const Row& row = *find_row(node);
  if (node.is("aten::gelu") && !node.argument("approximate").get<std::string>()) return "the form is computed";
  std::string refusal = refuse_tensor(builder, Argument(node.result()), Dtype::f32);
  bool all_held = true;
  for (int i = 0; i < row.operands; ++i) {
    const Argument& operand = node.arguments[static_cast<size_t>(i)];
    if (refusal.empty()) refusal = refuse_operand(builder, operand);
    all_held = all_held && (!operand.is_value() || builder.is_held(operand.value()));
  }
  if (!refusal.empty()) return refusal;
  if (all_held) return "the reference library holds all operands";
  const int alpha = node.op.argument_index("alpha");
  if (alpha >= 0 && !is_number(node.arguments[static_cast<size_t>(alpha)])) return "alpha is computed";
  return builder.type(node.result()).sizes.size() <= 5 ? "" : "more than 5 dimensions";
}

void emit_elementwise(PlanBuilder& builder, const Node& node) {
  const Row& row = *find_row(node);
  PlanStep step;
  step.kernel = "elementwise";
  std::vector<std::string> program;
  Format format = Format::row_major;
  for (int i = 0; i < row.operands; ++i) {
    const Argument& operand = node.arguments[static_cast<size_t>(i)];
    if (!operand.is_value()) {
      program.push_back("constant " + std::to_string(i) + " 0 0 0 " + format_number(read_number(operand)) + " 0");
      continue;
    }
    program.push_back(instruction("load", i, static_cast<int>(step.operands.size()), 0));
    step.operands.push_back(builder.use(operand));
    const bool whole = builder.type(operand.value()).sizes == builder.type(node.result()).sizes;
    if (whole && builder.format(operand.value()) == Format::channels_last) format = Format::channels_last;
  }
  const int alpha_index = node.op.argument_index("alpha");
  const double alpha = alpha_index < 0 ? 1 : read_number(node.arguments[static_cast<size_t>(alpha_index)]);
  if (alpha != 1) {
    program.push_back("constant 2 0 0 0 " + format_number(alpha) + " 0");
    program.push_back(instruction("multiply", 1, 1, 2));
  }
  std::string operation(row.operation);
  if (node.is("aten::gelu") && *node.argument("approximate").get<std::string>() == "tanh") operation = "gelu_tanh";
  if (const auto activation = parse_activation(operation)) {
    program.push_back(instruction("activate", 3, 0, static_cast<int>(*activation)));
  } else {
    program.push_back(instruction(operation, 3, 0, row.operands == 2 ? 1 : 0));
  }
  step.attributes.set("program", std::move(program));
  step.results = {builder.make(node.result(), Storage::arena, format)};
  builder.add_step(std::move(step), node);
}

}  // namespace lissome

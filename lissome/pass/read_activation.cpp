#include "lissome/pass/read_activation.h"

namespace lissome {

std::string read_activation(const Rewriter& rewriter, const Node& node) {
  struct Row {
    std::string_view op, activation;
  };
  static constexpr Row kPlain[] = {
      {"aten::relu", "relu"},   {"aten::silu", "silu"},           {"aten::sigmoid", "sigmoid"},
      {"aten::tanh", "tanh"},   {"aten::hardswish", "hardswish"}, {"aten::hardsigmoid", "hardsigmoid"},
      {"aten::relu6", "relu6"},
  };
  for (const Row& row : kPlain) {
    if (node.is(row.op)) return std::string(row.activation);
  }
  const auto number = [&](std::string_view name) { return constant_number(rewriter, node.argument(name)); };
  if (node.is("aten::gelu")) return node.argument("approximate") == Argument("tanh") ? "gelu_tanh" : "gelu";
  if (node.is("aten::leaky_relu") && number("negative_slope") == 0.01) return "leaky_relu";
  if (node.is("aten::hardtanh") && number("min_val") == 0.0 && number("max_val") == 6.0) return "relu6";
  return {};
}

}  // namespace lissome

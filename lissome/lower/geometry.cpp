#include "lissome/lower/geometry.h"

#include "lissome/lower/refusals.h"

namespace lissome {

std::vector<int64_t> spread(std::vector<int64_t> numbers, size_t spatial) {
  if (numbers.size() == 1) numbers.resize(spatial, numbers[0]);
  return numbers;
}

std::string refuse_geometry(const Node& node) {
  for (const char* name : {"stride", "padding", "dilation"}) {
    const auto numbers = read_integers(node.argument(name));
    if (!numbers) return std::string(name) + " is computed";
    for (const int64_t number : *numbers) {
      if (number < 0) return std::string(name) + " is negative";
    }
  }
  return node.argument("groups").get<int64_t>() ? std::string() : "groups is computed";
}

bool is_depthwise(const Node& node, const at::Tensor& weight) {
  const int64_t groups = *node.argument("groups").get<int64_t>();
  return groups > 1 && weight.size(1) == 1 && weight.size(0) == groups;
}

const Argument& conv_input(const Node& node) {
  return node.argument(node.op.argument_index("input") >= 0 ? "input" : "x");
}

std::string refuse_scattered(const Node& node) {
  if (node.argument("groups") != Argument(int64_t{1})) return "it has groups where pixels spread";
  const std::vector<int64_t> dilation = *read_integers(node.argument("dilation"));
  const std::vector<int64_t> stride = *read_integers(node.argument("stride"));
  for (const int64_t number : dilation) {
    if (number != 1) return "it is dilated where pixels spread";
  }
  for (const int64_t number : stride) {
    if (number < 1 || number > 64) return "its stride is above 64 where pixels spread";
  }
  return {};
}

void set_geometry(PlanStep& step, const Node& node, const at::Tensor& weight) {
  const auto spatial = static_cast<size_t>(weight.dim() - 2);
  step.attributes.set("kernel", std::vector<int64_t>(weight.sizes().begin() + 2, weight.sizes().end()));
  for (const char* name : {"stride", "padding", "dilation"}) {
    step.attributes.set(name, spread(*read_integers(node.argument(name)), spatial));
  }
  step.attributes.set("groups", *node.argument("groups").get<int64_t>());
}

}  // namespace lissome

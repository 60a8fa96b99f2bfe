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

void set_geometry(PlanStep& step, const Node& node, const at::Tensor& weight) {
  const auto spatial = static_cast<size_t>(weight.dim() - 2);
  step.attributes.set("kernel", std::vector<int64_t>(weight.sizes().begin() + 2, weight.sizes().end()));
  for (const char* name : {"stride", "padding", "dilation"}) {
    step.attributes.set(name, spread(*read_integers(node.argument(name)), spatial));
  }
  step.attributes.set("groups", *node.argument("groups").get<int64_t>());
}

}  // namespace lissome

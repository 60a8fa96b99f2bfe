// See batch_norm_least.h.
#include "lissome/train/rewrite/batch_norm_least.h"

#include <algorithm>

#include "lissome/train/rewrite/batch_norm_forms.h"

namespace lissome {
namespace {

// Values a channel where every named dimension is `size`; empty if that is not known.
std::optional<int64_t> count_values(const ValueType& type, const Program& program, int64_t size) {
  if (!type.sized || type.sizes.size() < 2) return std::nullopt;
  DimensionBindings bindings;
  for (const NamedDimension& dimension : program.dimensions)
    bindings[dimension.name] = std::clamp(size, dimension.minimum, dimension.maximum);
  int64_t values = 1;
  for (size_t i = 0; i < type.sizes.size(); ++i) {
    if (i == 1) continue;
    const std::optional<int64_t> number = type.sizes[i].try_evaluate(bindings);
    if (!number) return std::nullopt;
    values *= *number;
  }
  return values;
}

}  // namespace

int64_t find_least_for_batch_norm(const Program& program) {
  int64_t least = 1;
  for (const Node& node : program.nodes) {
    if (!normalizes_by_batch(node) || !node.arguments.at(0).is_value()) continue;
    const ValueType& type = program.value(node.arguments[0].value()).type;
    const std::optional<int64_t> of_one = count_values(type, program, 1), of_two = count_values(type, program, 2);
    if (!of_one || !of_two || *of_one > 1) continue;
    if (*of_two < 2)
      throw_error(ErrorKind::invalid_input, describe_node(node),
                  ": batch norm in train form needs more than one value a channel, and a batch of the model has one.\n"
                  "      Export it with a batch of 2 samples or more, or in eval form");
    least = 2;
  }
  return least;
}

}  // namespace lissome

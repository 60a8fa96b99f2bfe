#include <algorithm>

#include "lissome/compare.h"

namespace lissome {
namespace {

// Rows of the embedding that looks `value` up, through casts and views; nothing when none does.
std::optional<int64_t> find_index_range(const Program& program, ValueId value, int depth = 0) {
  constexpr int kDepth = 8;
  if (depth > kDepth) return std::nullopt;
  std::optional<int64_t> least;
  const auto consider = [&](std::optional<int64_t> rows) {
    if (rows && (!least || *rows < *least)) least = rows;
  };
  for (const Node& node : program.nodes) {
    if (!node.op.has_schema()) continue;
    const int indices = node.op.argument_index("indices");
    const bool embeds =
        node.is("aten::embedding") || node.is("aten::embedding_bag.padding_idx") || node.is("aten::embedding_bag");
    if (embeds && indices >= 0 && node.arguments[static_cast<size_t>(indices)] == Argument(value)) {
      if (const Weight* weight = program.find_weight(node.argument("weight").value())) consider(weight->tensor.size(0));
      continue;
    }
    const bool passes = !node.arguments.empty() && node.arguments.front() == Argument(value) &&
                        node.results.size() == 1 &&
                        (node.is("aten::reshape") || node.is("aten::view") || node.is("aten::to.dtype") ||
                         node.is("aten::_to_copy") || node.is("aten::slice.Tensor") || node.is("aten::unsqueeze") ||
                         node.is("aten::clone") || node.is("aten::flatten.using_ints"));
    if (passes) consider(find_index_range(program, node.result(), depth + 1));
  }
  return least;
}

bool asks_for_nonfinite(const Program& program, ValueId value) {
  return std::ranges::any_of(program.nodes, [&](const Node& node) {
    return node.op.has_schema() && !node.arguments.empty() && node.arguments.front() == Argument(value) &&
           lissome::asks_for_nonfinite(node.op.name());
  });
}

}  // namespace

std::vector<DataSignature> describe_inputs(const Program& program) {
  std::vector<DataSignature> signature;
  for (const ProgramInput& input : program.inputs) {
    const ValueType& type = program.value(input.value).type;
    if (type.kind != ValueKind::tensor) {
      throw_error(ErrorKind::unsupported, "input '", input.name, "' is not a tensor: data files hold tensors alone");
    }
    DataSignature entry;
    entry.name = input.name;
    entry.dtype = type.dtype;
    for (const Dimension& size : type.sizes) entry.sizes.push_back(size.constant().value_or(-1));
    if (is_integral(type.dtype)) {
      if (const std::optional<int64_t> rows = find_index_range(program, input.value)) entry.range = {{0, *rows - 1}};
    }
    entry.allow_nonfinite = asks_for_nonfinite(program, input.value);
    signature.push_back(std::move(entry));
  }
  return signature;
}

CallSizes describe_call(const Program& program) {
  std::vector<DimensionRange> dimensions;
  std::vector<std::string> names;
  for (const NamedDimension& dimension : program.dimensions) {
    dimensions.push_back({dimension.minimum, dimension.maximum});
    names.push_back(dimension.name);
  }
  const auto make_formula = [&names](const Dimension& size) -> SizeFormula {
    return [size, names](std::span<const int64_t> values) {
      DimensionBindings bindings;
      for (size_t i = 0; i < values.size(); ++i) bindings[names[i]] = values[i];
      return size.try_evaluate(bindings);
    };
  };
  std::vector<std::vector<SizeFormula>> inputs;
  for (const ProgramInput& input : program.inputs) {
    std::vector<SizeFormula>& sizes = inputs.emplace_back();
    for (const Dimension& size : program.value(input.value).type.sizes) sizes.push_back(make_formula(size));
  }
  std::vector<SizeFormula> requirements;
  for (const SizeRequirement& requirement : program.requirements)
    requirements.push_back(make_formula(requirement.slack));
  return {std::move(dimensions), std::move(inputs), std::move(requirements)};
}

}  // namespace lissome

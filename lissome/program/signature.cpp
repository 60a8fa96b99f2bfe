// Inputs against the program's signature: count, kinds, element types, sizes, and the named dimensions that follow from
// them. Every message names the input, what was seen and what is allowed.
#include <ATen/core/ivalue.h>

#include "lissome/program.h"

namespace lissome {
namespace {

std::string_view kind_word(ValueKind kind) {
  switch (kind) {
    case ValueKind::tensor: return "a tensor";
    case ValueKind::integer: return "an integer";
    case ValueKind::floating: return "a float";
    case ValueKind::boolean: return "a bool";
    case ValueKind::string: return "a string";
    case ValueKind::list: return "a list";
    case ValueKind::none: return "none";
    case ValueKind::any: return "anything";
  }
  return "?";
}

ValueKind kind_of(const c10::IValue& value) {
  if (value.isTensor()) return ValueKind::tensor;
  if (value.isInt()) return ValueKind::integer;
  if (value.isDouble()) return ValueKind::floating;
  if (value.isBool()) return ValueKind::boolean;
  if (value.isString()) return ValueKind::string;
  if (value.isList()) return ValueKind::list;
  if (value.isNone()) return ValueKind::none;
  return ValueKind::any;
}

std::string print_sizes(const ValueType& type) {
  std::vector<std::string> parts;
  for (const Dimension& size : type.sizes) parts.push_back(size.print());
  return "[" + join(parts, ", ") + "]";
}

// One size of one input, which must equal an expression over named dimensions.
struct SizeFact {
  const ProgramInput* input = nullptr;
  int dimension = 0;  // -1: the input is itself the number
  const Dimension* expected = nullptr;
  int64_t seen = 0;
};

std::string describe(const SizeFact& fact) {
  if (fact.dimension < 0) return "input '" + fact.input->name + "' is " + std::to_string(fact.seen);
  return "input '" + fact.input->name + "' has size " + std::to_string(fact.seen) + " at dimension " +
         std::to_string(fact.dimension);
}

std::string describe_range(const NamedDimension& dimension) {
  std::string text = dimension.name + " is at least " + std::to_string(dimension.minimum);
  if (dimension.maximum != INT64_MAX) text += " and at most " + std::to_string(dimension.maximum);
  return text;
}

const NamedDimension* find_dimension(const Program& program, std::string_view name) {
  for (const NamedDimension& dimension : program.dimensions) {
    if (dimension.name == name) return &dimension;
  }
  return nullptr;
}

void check_tensor(const Program& program, const ProgramInput& input, const at::Tensor& tensor,
                  std::vector<SizeFact>& facts) {
  const ValueType& type = program.value(input.value).type;
  if (!tensor.defined()) throw_error(ErrorKind::invalid_input, "input '", input.name, "' is an undefined tensor");
  if (tensor.scalar_type() != scalar_type_of(type.dtype)) {
    throw_error(ErrorKind::invalid_input, "input '", input.name, "' has element type ",
                dtype_name(dtype_of(tensor.scalar_type())), ", the model takes ", dtype_name(type.dtype));
  }
  if (!type.sized) return;
  if (static_cast<size_t>(tensor.dim()) != type.sizes.size()) {
    throw_error(ErrorKind::invalid_input, "input '", input.name, "' has sizes ", format_sizes(tensor.sizes()),
                ", the model takes ", print_sizes(type));
  }
  for (int i = 0; i < static_cast<int>(type.sizes.size()); ++i) {
    facts.push_back({&input, i, &type.sizes[static_cast<size_t>(i)], tensor.size(i)});
  }
}

std::vector<SizeFact> check_kinds(const Program& program, std::span<const c10::IValue> inputs) {
  if (inputs.size() != program.inputs.size()) {
    std::vector<std::string> names;
    for (const ProgramInput& input : program.inputs) names.push_back(input.name);
    throw_error(ErrorKind::invalid_input, "the model takes ", program.inputs.size(), " inputs (", join(names, ", "),
                "), not ", inputs.size());
  }
  std::vector<SizeFact> facts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ProgramInput& input = program.inputs[i];
    const ValueType& type = program.value(input.value).type;
    const ValueKind seen = kind_of(inputs[i]);
    const bool fits = type.kind == ValueKind::any || type.kind == seen ||
                      (type.kind == ValueKind::floating && seen == ValueKind::integer);
    if (!fits) {
      throw_error(ErrorKind::invalid_input, "input '", input.name, "' is ", kind_word(seen), ", the model takes ",
                  kind_word(type.kind));
    }
    if (type.kind == ValueKind::tensor) check_tensor(program, input, inputs[i].toTensor(), facts);
    if (type.kind == ValueKind::integer && type.sized && type.sizes.size() == 1) {
      facts.push_back({&input, -1, &type.sizes[0], inputs[i].toInt()});
    }
  }
  return facts;
}

// The value of the one unbound name for which the expression takes the size that was seen; expressions of sizes grow
// with their names, so a search between the bounds finds it.
std::optional<int64_t> solve(const SizeFact& fact, const NamedDimension& unknown, DimensionBindings bindings) {
  int64_t low = unknown.minimum, high = std::min<int64_t>(unknown.maximum, int64_t{1} << 40);
  const auto evaluate = [&](int64_t candidate) {
    bindings[unknown.name] = candidate;
    return fact.expected->evaluate(bindings);
  };
  while (low <= high) {
    const int64_t middle = low + (high - low) / 2;
    const int64_t size = evaluate(middle);
    if (size == fact.seen) return middle;
    if (size < fact.seen) {
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  return std::nullopt;
}

void bind_names(const Program& program, const std::vector<SizeFact>& facts, DimensionBindings& bindings) {
  for (const SizeFact& fact : facts) {
    if (fact.expected->operation() == Dimension::Operation::name) {
      bindings.emplace(fact.expected->name(), fact.seen);
    }
  }
  // Names that occur in expressions alone, such as 2*n.
  for (const SizeFact& fact : facts) {
    std::vector<std::string> unbound;
    for (const std::string& name : fact.expected->names()) {
      if (!bindings.contains(name)) unbound.push_back(name);
    }
    if (unbound.size() != 1) continue;
    const NamedDimension* declared = find_dimension(program, unbound[0]);
    const auto solution = solve(fact, declared == nullptr ? NamedDimension{unbound[0]} : *declared, bindings);
    if (!solution) {
      throw_error(ErrorKind::invalid_input, describe(fact), ", the model takes ", fact.expected->print(), " there",
                  declared == nullptr ? "" : ", where " + describe_range(*declared));
    }
    bindings[unbound[0]] = *solution;
  }
}

void check_ranges(const Program& program, const std::vector<SizeFact>& facts, const DimensionBindings& bindings) {
  for (const NamedDimension& dimension : program.dimensions) {
    const auto found = bindings.find(dimension.name);
    if (found == bindings.end() || (found->second >= dimension.minimum && found->second <= dimension.maximum)) continue;
    for (const SizeFact& fact : facts) {
      if (fact.expected->operation() != Dimension::Operation::name || fact.expected->name() != dimension.name) continue;
      throw_error(ErrorKind::invalid_input, describe(fact), "; there the model's ", describe_range(dimension));
    }
    throw_error(ErrorKind::invalid_input, dimension.name, " would be ", found->second, "; the model's ",
                describe_range(dimension));
  }
}

}  // namespace

DimensionBindings bind_dimensions(const Program& program, std::span<const c10::IValue> inputs) {
  const std::vector<SizeFact> facts = check_kinds(program, inputs);
  DimensionBindings bindings;
  bind_names(program, facts, bindings);
  for (const SizeFact& fact : facts) {
    const auto expected = fact.expected->try_evaluate(bindings);
    if (!expected || *expected == fact.seen) continue;
    const std::string text = fact.expected->print();
    throw_error(ErrorKind::invalid_input, describe(fact), ", the model takes ", text,
                fact.expected->constant() ? "" : " = " + std::to_string(*expected), " there");
  }
  check_ranges(program, facts, bindings);
  return bindings;
}

namespace {

// " (dimension 0 of 'x')", of the first input that has this size; else empty.
std::string find_place(const Program& program, const std::string& dimension) {
  for (const ProgramInput& input : program.inputs) {
    const std::vector<Dimension>& sizes = program.value(input.value).type.sizes;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i].operation() == Dimension::Operation::name && sizes[i].name() == dimension)
        return " (dimension " + std::to_string(i) + " of " + quote(input.name) + ")";
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> list_written_names(const Program& program) {
  std::vector<std::string> names;
  for (const StateWrite& write : program.writes) names.push_back(program.value(write.target).name);
  return names;
}

void check_requirements(const Program& program, const DimensionBindings& sizes) {
  for (const SizeRequirement& requirement : program.requirements) {
    const std::optional<int64_t> slack = requirement.slack.try_evaluate(sizes);
    if (slack && *slack >= 0) continue;
    std::vector<std::string> seen;
    for (const std::string& name : requirement.slack.names()) {
      const auto bound = sizes.find(name);
      seen.push_back(name + " = " + (bound == sizes.end() ? "unknown" : std::to_string(bound->second)) +
                     find_place(program, name));
    }
    throw_error(ErrorKind::invalid_input, "the model was exported for sizes where ", requirement.text, ", not for ",
                join(seen, ", "), ".\n      Export it at such sizes too, or give others.");
  }
}

}  // namespace lissome

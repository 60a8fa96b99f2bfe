#include "lissome/train/step/fit_model.h"

#include <algorithm>

namespace lissome {
namespace {

Dimension substitute(const Dimension& size, const DimensionBindings& bindings) {
  switch (size.operation()) {
    case Dimension::Operation::constant: return size;
    case Dimension::Operation::name: {
      const auto bound = bindings.find(size.name());
      return bound == bindings.end() ? size : Dimension(bound->second);
    }
    default: break;
  }
  const auto [left, right] = size.operands();
  return Dimension::combine(size.operation(), substitute(left, bindings), substitute(right, bindings));
}

// What is left of the requirements when some dimensions are known.
void bind_requirements(Program& program, const DimensionBindings& bindings) {
  std::vector<SizeRequirement> left;
  for (const SizeRequirement& requirement : program.requirements) {
    const Dimension slack = substitute(requirement.slack, bindings);
    if (slack == requirement.slack) {
      left.push_back(requirement);
    } else if (!slack.constant()) {
      left.push_back(SizeRequirement::parse(slack.print() + " >= 0"));
    } else if (*slack.constant() < 0) {
      check_requirements(program, bindings);
    }
  }
  program.requirements = std::move(left);
}

void bind_types(Program& program, const DimensionBindings& bindings) {
  bind_requirements(program, bindings);
  for (Value& value : program.values) {
    for (Dimension& size : value.type.sizes) size = substitute(size, bindings);
  }
  std::erase_if(program.dimensions, [&](const NamedDimension& dimension) { return bindings.contains(dimension.name); });
  for (Node& node : program.nodes) {
    for (auto& body : node.bodies) {
      auto bound = std::make_shared<Program>(*body);
      bind_types(*bound, bindings);
      body = std::move(bound);
    }
  }
}

// The name of the dimension if this size is a named dimension, else empty.
std::string find_name(const Dimension& size) {
  return size.operation() == Dimension::Operation::name ? size.name() : std::string();
}

std::vector<std::string> list_batch_names(const Program& model) {
  std::vector<std::string> names;
  for (const ProgramInput& input : model.inputs) {
    const ValueType& type = model.value(input.value).type;
    if (type.sizes.empty()) continue;
    if (const std::string name = find_name(type.sizes.front()); !name.empty()) names.push_back(name);
  }
  return names;
}

// Whether the samples of both data sets have equal sizes.
bool agree(const Dataset& data, const Dataset* validation) {
  if (validation == nullptr) return true;
  if (data.columns.size() != validation->columns.size()) return false;
  for (size_t i = 0; i < data.columns.size(); ++i) {
    if (data.columns[i].sample_sizes != validation->columns[i].sample_sizes) return false;
  }
  return true;
}

// For a size that depends on one dimension, such as 2*n: that dimension, and its value if the size is `sample`.
std::optional<std::pair<std::string, int64_t>> solve(const Program& model, const Dimension& size, int64_t sample) {
  const std::vector<std::string> names = size.names();
  if (names.size() != 1) return std::nullopt;
  if (!find_name(size).empty()) return std::pair(names[0], sample);
  for (const NamedDimension& dimension : model.dimensions) {
    if (dimension.name != names[0]) continue;
    constexpr int64_t kMostTried = int64_t{1} << 20;
    for (int64_t value = dimension.minimum, tried = 0; tried < kMostTried && value <= dimension.maximum;
         ++value, ++tried) {
      if (size.try_evaluate({{names[0], value}}) == sample) return std::pair(names[0], value);
    }
  }
  return std::nullopt;
}

// A size that is an expression of several dimensions does not determine any of them.
DimensionBindings bind_samples(const Program& model, const Dataset& data, const std::vector<std::string>& batch) {
  DimensionBindings bindings;
  for (size_t i = 0; i < std::min(model.inputs.size(), data.columns.size()); ++i) {
    const std::vector<Dimension>& sizes = model.value(model.inputs[i].value).type.sizes;
    const Sizes& samples = data.columns[i].sample_sizes;
    for (size_t k = 1; k < sizes.size() && k <= samples.size(); ++k) {
      const auto solved = solve(model, sizes[k], samples[k - 1]);
      if (solved && std::find(batch.begin(), batch.end(), solved->first) == batch.end()) bindings.insert(*solved);
    }
  }
  return bindings;
}

std::string describe_fit(BatchFit fit, int64_t batch) {
  switch (fit) {
    case BatchFit::any: return {};
    case BatchFit::two_or_more:
      return "batches have 2 samples or more; a single remaining sample is left out of its epoch";
    case BatchFit::one_size:
      return "batches have exactly " + std::to_string(batch) +
             " samples; samples that do not fill a batch are left out of their epoch";
  }
  return {};
}

}  // namespace

std::optional<Program> fit_model(const Program& model, const Dataset& data, const Dataset* validation, BatchFit fit,
                                 int64_t batch) {
  const std::vector<std::string> names = list_batch_names(model);
  DimensionBindings bindings;
  if (agree(data, validation)) bindings = bind_samples(model, data, names);
  Program fitted = model;
  bool changed = fit == BatchFit::any;
  for (NamedDimension& dimension : fitted.dimensions) {
    if (std::find(names.begin(), names.end(), dimension.name) == names.end()) continue;
    if (fit == BatchFit::one_size) {
      bindings[dimension.name] = batch;
      changed = true;
    } else if (fit == BatchFit::two_or_more && batch >= 2 && dimension.minimum < 2 && dimension.maximum > 2) {
      dimension.minimum = 2;
      changed = true;
    }
  }
  if (!changed) return std::nullopt;
  bind_types(fitted, bindings);
  return fitted;
}

Program raise_least_batch(Program model, int64_t least) {
  const std::vector<std::string> names = list_batch_names(model);
  for (NamedDimension& dimension : model.dimensions) {
    if (std::find(names.begin(), names.end(), dimension.name) != names.end())
      dimension.minimum = std::max(dimension.minimum, std::min(least, dimension.maximum));
  }
  return model;
}

void fit_widest(const Program& model, const Dataset& data, const Dataset* validation, int64_t batch,
                const FitTaker& start) {
  std::optional<Error> first;
  for (const BatchFit fit : {BatchFit::any, BatchFit::two_or_more, BatchFit::one_size}) {
    std::optional<Program> fitted = fit_model(model, data, validation, fit, batch);
    if (!fitted) continue;
    try {
      return start(std::move(*fitted), first ? describe_fit(fit, batch) + ": " + first->message() : "");
    } catch (const Error& error) {
      // Gradients are recorded at several sizes. An index that is valid at the sizes of the data may be out of range at
      // these.
      if (error.kind() != ErrorKind::unsupported && error.kind() != ErrorKind::invalid_input) throw;
      if (!first) first = error;
    }
  }
  throw *first;
}

}  // namespace lissome

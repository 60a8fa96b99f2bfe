// Types that passes left open, found by running: on the inputs as given, for each named dimension with that dimension
// one larger, so that a size that grows with it is told from one that only happens to be equal, and with all dimensions
// a few larger, so that one that grows unevenly is.
#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>

#include <algorithm>

#include "lissome/program.h"
#include "lissome/program/shape/fit_sizes.h"

namespace lissome {
namespace {

struct Trial {
  std::string grown;  // the named dimension that was changed
  int64_t by = 0;
  Bound bound;
};

// The tensor with each size changed to what its type says under `bindings`, filled by repeating its slices.
at::Tensor resize_by_repeating(at::Tensor tensor, const ValueType& type, const DimensionBindings& bindings) {
  for (size_t i = 0; i < type.sizes.size(); ++i) {
    const auto dim = static_cast<int64_t>(i);
    const int64_t wanted = type.sizes[i].evaluate(bindings), size = tensor.size(dim);
    if (wanted == size || size == 0) continue;
    tensor = tensor.index_select(dim, at::arange(wanted, tensor.device()).remainder(size));
  }
  return tensor;
}

std::vector<c10::IValue> change_inputs(const Program& program, std::vector<c10::IValue> inputs,
                                       const DimensionBindings& bindings) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueType& type = program.value(program.inputs[i].value).type;
    if (type.kind == ValueKind::tensor && type.sized) {
      inputs[i] = resize_by_repeating(inputs[i].toTensor(), type, bindings);
    } else if (type.kind == ValueKind::integer && type.sized && type.sizes.size() == 1) {
      inputs[i] = type.sizes[0].evaluate(bindings);
    }
  }
  return inputs;
}

std::optional<int64_t> choose_step(const NamedDimension& dimension, int64_t value) {
  if (value < dimension.maximum) return 1;
  if (value > dimension.minimum) return -1;
  return std::nullopt;
}

// `step` three times, as far as the dimension goes.
int64_t choose_stride(const NamedDimension& dimension, int64_t value, int64_t step) {
  return step * std::min<int64_t>(3, step > 0 ? dimension.maximum - value : value - dimension.minimum);
}

// base + sum of slope * (name - its value) over the dimensions; nothing where a size does not grow evenly.
std::optional<Dimension> fit_sum(size_t value, size_t place, const Bound& base, const std::vector<Trial>& trials) {
  using Operation = Dimension::Operation;
  int64_t constant = base.values[value].sizes[place];
  Dimension result(0);
  for (const Trial& trial : trials) {
    const Sizes& sizes = trial.bound.values[value].sizes;
    if (sizes.size() != base.values[value].sizes.size()) return std::nullopt;
    const int64_t change = sizes[place] - base.values[value].sizes[place];
    if (change % trial.by != 0) return std::nullopt;
    const int64_t slope = change / trial.by;
    if (slope == 0) continue;
    constant -= slope * base.dimensions.at(trial.grown);
    result = Dimension::combine(Operation::add, result,
                                Dimension::combine(Operation::multiply, slope, Dimension::named(trial.grown)));
  }
  return Dimension::combine(Operation::add, result, constant);
}

// Sizes that are products of dimensions grow evenly in each and yet not together: the joint trial tells.
bool agrees(const Dimension& fitted, int64_t seen, const Bound& joint) {
  return fitted.try_evaluate(joint.dimensions) == seen;
}

std::optional<Dimension> fit_product(size_t value, size_t place, const Bound& base, const Bound& joint,
                                     const std::vector<Trial>& trials) {
  using Operation = Dimension::Operation;
  Dimension product(1);
  int64_t at_base = 1;
  for (const Trial& trial : trials) {
    const Sizes& sizes = trial.bound.values[value].sizes;
    if (sizes.size() <= place || sizes[place] == base.values[value].sizes[place]) continue;
    product = Dimension::combine(Operation::multiply, product, Dimension::named(trial.grown));
    at_base *= base.dimensions.at(trial.grown);
  }
  const int64_t size = base.values[value].sizes[place];
  if (at_base == 0 || size % at_base != 0) return std::nullopt;
  product = Dimension::combine(Operation::multiply, product, size / at_base);
  return agrees(product, joint.values[value].sizes[place], joint) ? std::optional(product) : std::nullopt;
}

// What all runs saw together: squares, divisions.
std::optional<Dimension> fit_all(size_t value, size_t place, const Bound& base, const Bound& joint,
                                 const std::vector<Trial>& trials) {
  std::vector<SizeSample> samples;
  const auto add = [&](const Bound& bound) {
    const Sizes& sizes = bound.values[value].sizes;
    if (place < sizes.size()) samples.push_back({bound.dimensions, sizes[place]});
  };
  add(base), add(joint);
  for (const Trial& trial : trials) add(trial.bound);
  return fit_size(samples);
}

void fill_sizes(ValueType& type, size_t value, const Bound& base, const Bound* joint,
                const std::vector<Trial>& trials) {
  std::vector<Dimension> sizes;
  for (size_t place = 0; place < base.values[value].sizes.size(); ++place) {
    if (joint == nullptr) {
      sizes.emplace_back(base.values[value].sizes[place]);
      continue;
    }
    const Sizes& seen = joint->values[value].sizes;
    if (seen.size() != base.values[value].sizes.size()) return;
    auto fitted = fit_sum(value, place, base, trials);
    if (!fitted || !agrees(*fitted, seen[place], *joint)) fitted = fit_product(value, place, base, *joint, trials);
    if (!fitted) fitted = fit_all(value, place, base, *joint, trials);
    if (!fitted) return;
    sizes.push_back(std::move(*fitted));
  }
  type.sizes = std::move(sizes);
  type.sized = true;
}

bool is_open(const ValueType& type) {
  return type.kind == ValueKind::any || (type.kind == ValueKind::tensor && !type.sized);
}

}  // namespace

void infer_types(Program& program, const std::vector<c10::IValue>& inputs) {
  bool open = false;
  for (const Value& value : program.values) open |= is_open(value.type);
  if (!open) return;
  const Bound base = bind_program(program, inputs);
  std::vector<Trial> trials;
  DimensionBindings all = base.dimensions;
  for (const NamedDimension& dimension : program.dimensions) {
    const auto found = base.dimensions.find(dimension.name);
    if (found == base.dimensions.end()) continue;
    const auto step = choose_step(dimension, found->second);
    if (!step) continue;
    DimensionBindings grown = base.dimensions;
    grown[dimension.name] += *step;
    all[dimension.name] += choose_stride(dimension, found->second, *step);
    trials.push_back({dimension.name, *step, bind_program(program, change_inputs(program, inputs, grown))});
  }
  std::optional<Bound> joint;
  if (!trials.empty()) joint = bind_program(program, change_inputs(program, inputs, all));
  for (size_t i = 0; i < program.values.size(); ++i) {
    ValueType& type = program.values[i].type;
    const BoundValue& bound = base.values[i];
    if (type.kind == ValueKind::any) {
      type.kind = bound.kind;
      type.dtype = bound.dtype;
    }
    if (type.kind == ValueKind::tensor && bound.kind == ValueKind::tensor && !type.sized) {
      fill_sizes(type, i, base, joint ? &*joint : nullptr, trials);
    }
  }
}

}  // namespace lissome

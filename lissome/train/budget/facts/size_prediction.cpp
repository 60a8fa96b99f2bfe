// See size_prediction.h.
#include "lissome/train/budget/facts/size_prediction.h"

#include <ATen/core/ivalue.h>

namespace lissome {

DimensionBindings bind_sizes(const Program& program, const std::vector<Sizes>& sizes) {
  DimensionBindings bindings;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const ValueType& type = program.value(program.inputs[i].value).type;
    for (size_t k = 0; k < type.sizes.size() && k < sizes[i].size(); ++k) {
      if (type.sizes[k].operation() == Dimension::Operation::name) bindings[type.sizes[k].name()] = sizes[i][k];
    }
  }
  return bindings;
}

SizePrediction::SizePrediction(const Program& program, const std::vector<at::Tensor>& measured,
                               const std::vector<Sizes>& wanted)
    : program_(program),
      bound_(bind_program(program, {measured.begin(), measured.end()})),
      wanted_(bind_sizes(program, wanted)) {}

int64_t SizePrediction::count_measured(ValueId id) const {
  int64_t elements = 1;
  for (const int64_t size : measured(id).sizes) elements *= size;
  return elements;
}

int64_t SizePrediction::count_wanted(ValueId id) const {
  const ValueType& type = program_.value(id).type;
  if (!type.sized) return count_measured(id);
  int64_t elements = 1;
  for (size_t i = 0; i < type.sizes.size(); ++i) {
    const auto size = type.sizes[i].try_evaluate(wanted_);
    elements *= size ? *size : measured(id).sizes.at(i);
  }
  return elements;
}

double SizePrediction::scale(const Node& node) const {
  double wanted = 0, made = 0;
  for (const ValueId id : node.results) {
    if (id == ValueId::none || measured(id).kind != ValueKind::tensor) continue;
    made += static_cast<double>(count_measured(id));
    wanted += static_cast<double>(count_wanted(id));
  }
  // Gradients of weights have the same size for any batch that they are summed over.
  if (made == wanted) return scale_batch();
  return made > 0 ? wanted / made : 1;
}

double SizePrediction::scale_batch() const {
  double scale = 1;
  for (const auto& [name, size] : wanted_) {
    const auto found = bound_.dimensions.find(name);
    if (found != bound_.dimensions.end() && found->second > 0)
      scale *= static_cast<double>(size) / static_cast<double>(found->second);
  }
  return scale;
}

}  // namespace lissome

#include "lissome/train/step/loss_function.h"

#include <ATen/core/ivalue.h>
#include <torch/nn/module.h>

#include <algorithm>

#include "lissome/import_module.h"

namespace lissome {
namespace {

constexpr const char* kLabels = "labels";

// The model's tensor outputs, which are passed to the function.
std::vector<ValueId> list_tensor_outputs(const Program& model) {
  std::vector<ValueId> values;
  for (const ProgramOutput& output : model.outputs) {
    const bool tensor = output.value.is_value() && model.value(output.value.value()).type.kind == ValueKind::tensor;
    if (tensor) values.push_back(output.value.value());
  }
  if (values.empty()) throw_error(ErrorKind::invalid_input, "the model has no output for the loss");
  return values;
}

// Keeps sizes free that are named dimensions of the model.
TracedInput make_input(const Program& model, std::string name, at::Tensor example,
                       const std::vector<Dimension>& sizes) {
  TracedInput input{std::move(name), std::move(example), {}};
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].operation() != Dimension::Operation::name) continue;
    const auto known = std::find_if(model.dimensions.begin(), model.dimensions.end(),
                                    [&](const NamedDimension& dimension) { return dimension.name == sizes[i].name(); });
    if (known != model.dimensions.end()) input.dynamic.emplace_back(static_cast<int64_t>(i), *known);
  }
  return input;
}

std::vector<Dimension> label_sizes(const Program& model, ValueId output, const at::Tensor& example) {
  std::vector<Dimension> sizes(example.sizes().begin(), example.sizes().end());
  const std::vector<Dimension>& scores = model.value(output).type.sizes;
  if (!sizes.empty() && !scores.empty()) sizes[0] = scores[0];
  return sizes;
}

// Appends the nodes of `part`, applied to `inputs`, to `program`. Returns the value of its first output.
ValueId append_nodes(Program& program, const Program& part, const std::vector<ValueId>& inputs) {
  std::vector<ValueId> copies(part.values.size(), ValueId::none);
  const auto place = [&](ValueId id) -> ValueId& { return copies.at(static_cast<size_t>(id)); };
  for (size_t i = 0; i < inputs.size(); ++i) place(part.inputs[i].value) = inputs[i];
  for (const Weight& weight : part.weights)
    place(weight.value) = program.add_weight("loss." + weight.name, weight.tensor, WeightRole::constant);
  for (const Node& node : part.nodes) {
    Node copy = node;
    for (Argument& argument : copy.arguments) argument = map_values(argument, place);
    for (ValueId& result : copy.results) {
      if (result == ValueId::none) continue;
      const Value& value = part.value(result);
      result = place(result) = program.add_value(value.type);
    }
    program.nodes.push_back(std::move(copy));
  }
  if (!part.outputs.at(0).value.is_value())
    throw_error(ErrorKind::invalid_input, "the loss function returns a constant");
  return place(part.outputs[0].value.value());
}

}  // namespace

Program attach_loss_function(const Program& model, const LossFunction& function,
                             const std::vector<at::Tensor>& examples) {
  const std::vector<ValueId> outputs = list_tensor_outputs(model);
  const bool has_labels = examples.size() > model.inputs.size();
  const std::vector<at::Tensor> inputs(examples.begin(), examples.begin() + std::ssize(model.inputs));
  const std::vector<c10::IValue> given(inputs.begin(), inputs.end());
  std::vector<TracedInput> traced;
  for (const c10::IValue& output : interpret(model, given)) {
    if (!output.isTensor() || traced.size() == outputs.size()) continue;
    const ValueId value = outputs[traced.size()];
    traced.push_back(
        make_input(model, "output." + std::to_string(traced.size()), output.toTensor(), model.value(value).type.sizes));
  }
  Program with_loss = model;
  std::vector<ValueId> arguments = outputs;
  if (has_labels) {
    const at::Tensor& labels = examples.back();
    const std::vector<Dimension> sizes = label_sizes(model, outputs[0], labels);
    traced.push_back(make_input(model, kLabels, labels, sizes));
    arguments.push_back(with_loss.add_input(kLabels, {ValueKind::tensor, dtype_of(labels.scalar_type()), true, sizes}));
  }
  const ForwardOne forward = [&](const std::vector<at::Tensor>& tensors) {
    const std::vector<at::Tensor> of_model(tensors.begin(), tensors.begin() + std::ssize(outputs));
    const at::Tensor loss = function(of_model, has_labels ? tensors.back() : at::Tensor());
    if (!loss.defined() || loss.dim() != 0 || !loss.is_floating_point())
      throw_error(ErrorKind::invalid_input, "the loss function does not return a floating-point scalar");
    return loss;
  };
  const Program part = import_module(torch::nn::Module("loss"), traced, forward);
  const ValueId loss = append_nodes(with_loss, part, arguments);
  with_loss.outputs.insert(with_loss.outputs.begin(), {loss, "loss"});
  return with_loss;
}

}  // namespace lissome

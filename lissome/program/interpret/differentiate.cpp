// See differentiate.h. The recorded code is: interpret with autograd on, then ask for the gradients. State that the
// program writes leaves as outputs, which become writes again.
#include "lissome/differentiate.h"

#include <ATen/Context.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "lissome/program/check/find_undifferentiable.h"
#include "lissome/program/import/import_recorded.h"
#include "lissome/program/record/recordable_forms.h"

namespace lissome {
namespace {

bool looks_equal(const at::Tensor& left, const at::Tensor& right) {
  return left.const_data_ptr() == right.const_data_ptr() && left.scalar_type() == right.scalar_type() &&
         left.sizes() == right.sizes() && left.strides() == right.strides();
}

// The bytes between the first and the last element that it names.
std::pair<const std::byte*, const std::byte*> find_bytes(const at::Tensor& tensor) {
  const auto* begin = static_cast<const std::byte*>(tensor.const_data_ptr());
  if (tensor.numel() == 0) return {begin, begin};
  int64_t last = 0;
  for (int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  return {begin, begin + (last + 1) * tensor.itemsize()};
}

// Weights of an LSTM lie beside each other in one storage and are not tied for that.
bool overlap(const at::Tensor& left, const at::Tensor& right) {
  if (!left.has_storage() || !right.has_storage()) return false;
  const auto [first, end] = find_bytes(left);
  const auto [other_first, other_end] = find_bytes(right);
  return first < other_end && other_first < end;
}

// Makes the weight a leaf of autograd over the same memory, and every weight that is tied to it that very leaf, so that
// their gradients add up.
at::Tensor make_leaf(Program& program, const std::string& name) {
  const auto weight = std::find_if(program.weights.begin(), program.weights.end(),
                                   [&](const Weight& other) { return other.name == name; });
  if (weight == program.weights.end()) throw_error(ErrorKind::invalid_input, "the program has no weight '", name, "'");
  const at::Tensor leaf = weight->tensor;
  if (!leaf.is_floating_point() && !leaf.is_complex())
    throw_error(ErrorKind::invalid_input, "weight '", name, "' holds ", dtype_name(dtype_of(leaf.scalar_type())),
                ", which has no gradient");
  for (Weight& other : program.weights) {
    if (!overlap(other.tensor, leaf)) continue;
    if (!looks_equal(other.tensor, leaf))
      throw_error(ErrorKind::unsupported, "weights '", name, "' and '", other.name,
                  "' share memory but are no equal views of it, which training cannot do");
    other.tensor = leaf;
  }
  return leaf.requires_grad_();
}

// A copy whose chosen weights are leaves.
Program make_leaves(const Program& program, const std::vector<std::string>& names, std::vector<at::Tensor>& leaves) {
  Program copy = program;
  for (Weight& weight : copy.weights) weight.tensor = weight.tensor.detach();
  for (const std::string& name : names) leaves.push_back(make_leaf(copy, name));
  return copy;
}

// Null for a size that is fixed.
const NamedDimension* find_dimension(const Program& program, const std::string& input, const Dimension& size) {
  if (size.constant()) return nullptr;
  if (size.operation() != Dimension::Operation::name)
    throw_error(ErrorKind::unsupported, "input '", input, "' has the size ", size.print(),
                ", an expression; training takes sizes that are fixed or a named dimension");
  const auto known = std::find_if(program.dimensions.begin(), program.dimensions.end(),
                                  [&](const NamedDimension& dimension) { return dimension.name == size.name(); });
  LISSOME_CHECK(known != program.dimensions.end(), "no dimension ", size.name());
  return &*known;
}

std::vector<TracedInput> describe_inputs(const Program& program, const std::vector<at::Tensor>& examples) {
  if (examples.size() != program.inputs.size())
    throw_error(ErrorKind::invalid_input, "there are ", examples.size(), " examples for ", program.inputs.size(),
                " inputs");
  std::vector<TracedInput> inputs;
  for (size_t i = 0; i < examples.size(); ++i) {
    TracedInput input{program.inputs[i].name, examples[i], {}};
    const ValueType& type = program.value(program.inputs[i].value).type;
    if (type.kind != ValueKind::tensor)
      throw_error(ErrorKind::unsupported, "input '", input.name, "' is no tensor, which training cannot do");
    for (size_t place = 0; place < type.sizes.size(); ++place) {
      if (const NamedDimension* dimension = find_dimension(program, input.name, type.sizes[place])) {
        input.dynamic.emplace_back(static_cast<int64_t>(place), *dimension);
      }
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

at::Tensor to_tensor(const c10::IValue& value) {
  if (value.isTensor() || value.isNone()) return value.isNone() ? at::Tensor() : value.toTensor();
  throw_error(ErrorKind::unsupported, "the program gives a number beside its tensors, which training cannot do");
}

// Whether the data of a call decide how many elements the node gives; what follows from weights alone is fixed.
bool gives_data_sizes(const Program& program, const Node& node) {
  if (!find_effects(program, node).shape_from_data) return false;
  if (node.is("aten::combinations")) return false;  // it chooses by a mask that follows from sizes
  bool of_data = false;
  for (const Argument& argument : node.arguments)
    for_each_value(argument, [&](ValueId id) { of_data = of_data || program.find_weight(id) == nullptr; });
  return of_data;
}

// By value: whether its sizes follow from the data.
std::vector<bool> find_data_sized(const Program& program) {
  std::vector<bool> found(program.values.size(), false);
  for (const Node& node : program.nodes) {
    bool any = gives_data_sizes(program, node);
    for (const Argument& argument : node.arguments)
      for_each_value(argument, [&](ValueId id) { any = any || found[static_cast<size_t>(id)]; });
    for (const ValueId id : node.results) {
      if (id == ValueId::none) continue;
      const ValueType& type = program.value(id).type;
      found[static_cast<size_t>(id)] = any && type.kind == ValueKind::tensor && !type.sized;
    }
  }
  return found;
}

// What is recorded holds for all data of the same sizes: a number of rows that follows from the data has no place in
// it.
void refuse_data_sizes(const std::vector<bool>& data_sized, const Node& node, std::span<const c10::IValue> results) {
  for (size_t k = 0; k < results.size(); ++k) {
    const ValueId id = node.results[k];
    if (id == ValueId::none || !data_sized[static_cast<size_t>(id)] || !results[k].isTensor()) continue;
    if (results[k].toTensor().requires_grad())
      throw_error(ErrorKind::unsupported, "how many elements it gives depends on the data");
  }
}

// Outputs, gradients, then what is written.
std::vector<at::Tensor> run_with_gradients(const Program& program, const std::vector<at::Tensor>& leaves,
                                           const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> written, results;
  InterpretOptions options;
  options.gradients = true;
  options.written = &written;
  const std::vector<bool> data_sized = find_data_sized(program);
  options.observe = [&](const Node& node, std::span<const c10::IValue> values) {
    refuse_data_sizes(data_sized, node, values);
  };
  for (const c10::IValue& output : interpret(program, {inputs.begin(), inputs.end()}, options)) {
    results.push_back(to_tensor(output));
  }
  const at::Tensor loss = results.empty() ? at::Tensor() : results.front();
  if (!loss.defined() || loss.dim() != 0)
    throw_error(ErrorKind::invalid_input, "gradients are of a scalar, and the program's first output is ",
                loss.defined() ? c10::str("of sizes ", loss.sizes()) : std::string("none"));
  std::vector<at::Tensor> gradients(leaves.size());
  if (loss.requires_grad()) gradients = torch::autograd::grad({loss}, leaves, {}, false, false, true);
  for (std::vector<at::Tensor>* list : {&gradients, &written})
    results.insert(results.end(), list->begin(), list->end());
  return results;
}

RecordedModule describe_program(const Program& program, RecordingLevel level) {
  RecordedModule described;
  for (const Weight& weight : program.weights) described.state.push_back({weight.name, weight.tensor, weight.role});
  for (const Node& node : program.nodes) {
    if (node.origin) described.types.emplace(node.origin->module, node.origin->module_type);
  }
  described.training = program.training;
  described.level = level;
  return described;
}

// Ops run without oneDNN, whose LSTM keeps a tensor for its derivative that cannot be recorded.
class WithoutOnednn {
 public:
  WithoutOnednn() : before_(at::globalContext().userEnabledMkldnn()) {
    at::globalContext().setUserEnabledMkldnn(false);
  }
  WithoutOnednn(const WithoutOnednn&) = delete;
  WithoutOnednn& operator=(const WithoutOnednn&) = delete;
  ~WithoutOnednn() { at::globalContext().setUserEnabledMkldnn(before_); }

 private:
  bool before_;
};

Program record_gradients_at(const Program& program, const std::vector<std::string>& weights,
                            const std::vector<at::Tensor>& examples, RecordingLevel level) {
  std::vector<at::Tensor> leaves;
  const Program source = make_leaves(program, weights, leaves);
  return import_recorded(
      describe_program(source, level), describe_inputs(program, examples),
      [&](const std::vector<at::Tensor>& inputs) { return run_with_gradients(source, leaves, inputs); });
}

// With the gradients behind the program's own outputs, and what it writes to its state behind those. As PyTorch runs
// it; where that cannot be recorded, out of place and without oneDNN.
Program record_gradients(const Program& program, const std::vector<std::string>& weights,
                         const std::vector<at::Tensor>& examples) {
  std::optional<Error> refusal;
  try {
    return record_gradients_at(program, weights, examples, RecordingLevel::differentiated);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    refusal = error;
  }
  try {
    const WithoutOnednn without;
    return record_gradients_at(program, weights, examples, RecordingLevel::differentiated_out_of_place);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
  }
  throw *refusal;
}

// `refusal` with the layer in front that it is about.
[[noreturn]] void refuse_layer(const Program& program, const std::vector<std::string>& weights,
                               const std::vector<at::Tensor>& examples, const Error& refusal) {
  const auto node =
      find_undifferentiable_node(program, [&](const Program& part) { record_gradients(part, weights, examples); });
  if (!node) throw refusal;
  throw_error(ErrorKind::unsupported, "cannot train through ", describe_layer(program.nodes[*node]),
              ": its gradient cannot be recorded: ", refusal.message());
}

// A recording would take the slices of one example for those of the whole batch.
void refuse_vmapped(const Program& program) {
  for (const Node& node : program.nodes) {
    for (const auto& body : node.bodies) refuse_vmapped(*body);
    if (!is_vmapped(node)) continue;
    throw_error(ErrorKind::unsupported, "cannot train through ", describe_layer(node),
                ": its gradient cannot be recorded. Write the function for the whole batch");
  }
}

}  // namespace

const Weight& find_written_weight(const Program& program, const StateWrite& write) {
  if (const Weight* written = program.find_weight(write.target)) return *written;
  throw_error(ErrorKind::unsupported, "the model writes to an input, '", program.value(write.target).name,
              "', which training cannot do");
}

Program differentiate_program(const Program& given, const std::vector<std::string>& weights,
                              const std::vector<at::Tensor>& examples) {
  refuse_vmapped(given);
  Program program = given;
  use_recordable_forms(program);
  for (const StateWrite& write : program.writes) {
    const Weight& written = find_written_weight(program, write);
    if (std::find(weights.begin(), weights.end(), written.name) != weights.end())
      throw_error(ErrorKind::unsupported, "the model writes to its parameter '", written.name,
                  "' when it is called (max_norm of an embedding does), so it cannot be trained: freeze it");
  }
  Program joined;
  try {
    joined = record_gradients(program, weights, examples);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    refuse_layer(program, weights, examples, error);
  }
  const size_t own = program.outputs.size();
  for (size_t i = 0; i < program.writes.size(); ++i) {
    const Weight* target = program.find_weight(program.writes[i].target);
    const Argument& value = joined.outputs.at(own + weights.size() + i).value;
    joined.writes.push_back({joined.find_weight(target->name)->value, value.value()});
  }
  joined.outputs.resize(own + weights.size());
  for (size_t i = 0; i < own; ++i) joined.outputs[i].name = program.outputs[i].name;
  for (size_t i = 0; i < weights.size(); ++i) joined.outputs[own + i].name = "gradient." + weights[i];
  verify_program(joined, Stage::imported);
  return joined;
}

}  // namespace lissome

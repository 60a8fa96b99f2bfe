#include "lissome/reference/prepared_program.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>

#include "lissome/reference/device.h"

namespace lissome {
namespace {

int64_t read_clock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool is_plain_tensor(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::TensorType) return true;
  return type.kind() == c10::TypeKind::OptionalType &&
         type.castRaw<c10::OptionalType>()->getElementType()->kind() == c10::TypeKind::TensorType;
}

bool holds_value(const Argument& argument) {
  bool found = false;
  for_each_value(argument, [&](ValueId) { found = true; });
  return found;
}

}  // namespace

bool is_packing_op(const Op& op) {
  static constexpr std::array kNames = {"mkldnn::_reorder_linear_weight", "mkldnn::_reorder_convolution_weight",
                                        "mkldnn::_reorder_convolution_transpose_weight", "onednn::qlinear_prepack",
                                        "onednn::qconv_prepack"};
  return std::any_of(kNames.begin(), kNames.end(), [&](const char* name) { return op.is(name); });
}

PreparedProgram::PreparedProgram(Program program, const c10::Device& device)
    : program_(std::move(program)), device_(device) {
  if (!device_.is_cpu()) place_weights(program_, device_);
  constants_.resize(program_.values.size());
  std::vector<bool> known(program_.values.size(), false);
  for (const Weight& weight : program_.weights) {
    constants_[static_cast<size_t>(weight.value)] = weight.tensor;
    known[static_cast<size_t>(weight.value)] = true;
  }
  std::vector<std::vector<ValueId>> dying(program_.nodes.size());
  const std::vector<int> last = find_last_uses(program_);
  for (size_t id = 0; id < last.size(); ++id) {
    if (last[id] >= 0 && static_cast<size_t>(last[id]) < dying.size()) {
      dying[static_cast<size_t>(last[id])].push_back(ValueId{static_cast<int32_t>(id)});
    }
  }
  for (size_t i = 0; i < program_.nodes.size(); ++i) {
    const Node& node = program_.nodes[i];
    for (const ValueId id : node.results) {
      if (id != ValueId::none && last[static_cast<size_t>(id)] < 0) dying[i].push_back(id);
    }
    if (!is_packing_op(node.op) || !is_constant(node, known)) {
      nodes_.push_back(prepare(i, dying[i]));
      continue;
    }
    const IValues results = run_node(prepare(i, {}), constants_);
    for (size_t k = 0; k < results.size(); ++k) {
      constants_[static_cast<size_t>(node.results[k])] = results[k];
      known[static_cast<size_t>(node.results[k])] = true;
      if (results[k].isTensor()) {
        packed_bytes_ += results[k].toTensor().numel() * static_cast<int64_t>(results[k].toTensor().element_size());
      }
    }
  }
  // A constant is never handed to its last reader.
  for (PreparedNode& node : nodes_) {
    std::erase_if(node.dying, [&](ValueId id) { return known[static_cast<size_t>(id)]; });
  }
}

bool PreparedProgram::is_constant(const Node& node, const std::vector<bool>& known) const {
  bool constant = true;
  for (const Argument& argument : node.arguments) {
    for_each_value(argument, [&](ValueId id) { constant = constant && known[static_cast<size_t>(id)]; });
  }
  return constant;
}

PreparedProgram::PreparedNode PreparedProgram::prepare(size_t position, const std::vector<ValueId>& dying) const {
  const Node& node = program_.nodes[position];
  PreparedNode prepared{position, IValues(node.arguments.size()), {}, dying, CheckedCall(node.op)};
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    const Argument& argument = node.arguments[i];
    if (holds_value(argument)) {
      const bool fits =
          !node.op.has_schema() || (argument.is_value() && is_plain_tensor(*node.op.schema().arguments()[i].type()) &&
                                    program_.value(argument.value()).type.kind == ValueKind::tensor);
      prepared.open.push_back({i, argument.value(), fits});
    } else {
      prepared.arguments[i] = to_ivalue(argument);
      if (node.op.has_schema()) {
        prepared.arguments[i] = fit_to_schema(prepared.arguments[i], node.op.schema().arguments()[i]);
      }
    }
  }
  return prepared;
}

IValues PreparedProgram::run_node(const PreparedNode& prepared, IValues& environment) const {
  const Node& node = program_.nodes[prepared.node];
  IValues arguments = prepared.arguments;
  bool plain = node.op.has_schema();
  for (const Open& open : prepared.open) {
    const auto look_up = [&](ValueId id) { return environment[static_cast<size_t>(id)]; };
    arguments[open.position] = open.value != ValueId::none ? environment[static_cast<size_t>(open.value)]
                                                           : resolve_argument(node.arguments[open.position], look_up);
    plain = plain && open.fits;
  }
  // The last reader of a value gets it alone, so that its memory is free the moment the work is done.
  for (const ValueId id : prepared.dying) environment[static_cast<size_t>(id)] = c10::IValue();
  if (!plain) return interpret_node(node, arguments);
  try {
    prepared.call(arguments);
  } catch (const Error& error) {
    throw_error(error.kind(), describe_node(node), ": ", error.message());
  } catch (const c10::OutOfMemoryError& error) {
    throw_error(ErrorKind::over_budget, describe_node(node), ": ", error.what_without_backtrace());
  } catch (const c10::Error& error) {
    throw_error(ErrorKind::invalid_input, describe_node(node), ": ", error.what_without_backtrace());
  } catch (const std::runtime_error& error) {  // numbers that do not fit their dtype
    throw_error(ErrorKind::invalid_input, describe_node(node), ": ", error.what());
  }
  return arguments;
}

IValues PreparedProgram::run(IValues inputs, IValues& environment,
                             const std::function<void(size_t, const IValues&, int64_t)>* observe) const {
  if (environment.size() != constants_.size()) environment = constants_;
  for (size_t i = 0; i < inputs.size(); ++i) {
    environment[static_cast<size_t>(program_.inputs[i].value)] = std::move(inputs[i]);
  }
  inputs.clear();
  for (const PreparedNode& prepared : nodes_) {
    const int64_t before = observe ? read_clock() : 0;
    IValues results = run_node(prepared, environment);
    if (observe) {
      wait_for_device(device_);
      (*observe)(prepared.node, results, read_clock() - before);
    }
    const std::vector<ValueId>& ids = program_.nodes[prepared.node].results;
    if (results.size() != ids.size()) {
      throw_error(ErrorKind::invalid_input, describe_node(program_.nodes[prepared.node]), " gave ", results.size(),
                  " results, the program has ", ids.size());
    }
    for (size_t k = 0; k < results.size(); ++k) {
      if (ids[k] != ValueId::none) environment[static_cast<size_t>(ids[k])] = std::move(results[k]);
    }
    for (const ValueId id : prepared.dying) environment[static_cast<size_t>(id)] = c10::IValue();
  }
  IValues outputs;
  for (const ProgramOutput& output : program_.outputs) {
    outputs.push_back(environment[static_cast<size_t>(output.value.value())]);
  }
  for (const ProgramOutput& output : program_.outputs) {
    const auto at = static_cast<size_t>(output.value.value());
    environment[at] = constants_[at];
  }
  return outputs;
}

}  // namespace lissome

// What a program means: every node through the dispatcher, in order. The oracle of passes and kernels, so it stays
// plain: no fusion, no reordering. A value's last reader gets the value itself instead of a copy of the handle, so the
// tensor is freed the moment its work is done.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>

#include <algorithm>

#include "lissome/program/convert.h"
#include "lissome/program/interpret/interpreter.h"
#include "lissome/program/state.h"

namespace lissome {
namespace {

ErrorKind classify(const c10::Error& error) {
  if (dynamic_cast<const c10::NotImplementedError*>(&error) != nullptr) return ErrorKind::unsupported;
  const std::string_view text = error.what_without_backtrace();
  const bool memory = dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
                      text.find("not enough memory") != std::string_view::npos ||
                      text.find("can't allocate memory") != std::string_view::npos;
  return memory ? ErrorKind::over_budget : ErrorKind::invalid_input;
}

[[noreturn]] void rethrow(const Node& node) {
  try {
    throw;
  } catch (const Error& error) {
    if (error.message().find(node.op.name()) != std::string::npos) throw;
    throw_error(error.kind(), describe_node(node), ": ", error.message());
  } catch (const c10::Error& error) {
    throw_error(classify(error), describe_node(node), ": ", error.what_without_backtrace());
  } catch (const std::exception& error) {
    throw_error(ErrorKind::invalid_input, describe_node(node), ": ", error.what());
  }
}

bool occurs_once(const Node& node, ValueId id) {
  int count = 0;
  for (const Argument& argument : node.arguments) {
    for_each_value(argument, [&](ValueId other) { count += other == id; });
  }
  return count == 1;
}

// A factory without a device makes its tensor on the default device, which is not where the program runs.
bool is_deviceless_factory(const c10::FunctionSchema& schema, size_t position, const c10::IValue& value) {
  if (!value.isNone() || schema.arguments()[position].name() != "device") return false;
  return std::none_of(schema.arguments().begin(), schema.arguments().end(), [](const c10::Argument& argument) {
    return argument.type()->kind() == c10::TypeKind::TensorType;
  });
}

}  // namespace

IValues Interpreter::run_node(const Node& node, IValues arguments) {
  try {
    if (!node.op.has_schema()) return run_control(node, std::move(arguments));
    const c10::FunctionSchema& schema = node.op.schema();
    LISSOME_CHECK(arguments.size() == schema.arguments().size(), describe_node(node), " takes ",
                  schema.arguments().size(), " arguments, not ", arguments.size());
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (options_.device && is_deviceless_factory(schema, i, arguments[i])) arguments[i] = *options_.device;
      arguments[i] = fit_to_schema(std::move(arguments[i]), schema.arguments()[i]);
    }
    CheckedCall{node.op}(arguments);
    return arguments;
  } catch (...) {
    rethrow(node);
  }
}

const std::vector<std::vector<ValueId>>& Interpreter::find_deaths(const Program& program) {
  const auto [found, is_new] = deaths_.try_emplace(&program);
  if (!is_new) return found->second;
  auto& deaths = found->second;
  deaths.resize(program.nodes.size());
  const std::vector<int> last = find_last_uses(program);
  for (size_t id = 0; id < last.size(); ++id) {
    if (last[id] >= 0 && static_cast<size_t>(last[id]) < deaths.size()) {
      deaths[static_cast<size_t>(last[id])].push_back(ValueId{static_cast<int32_t>(id)});
    }
  }
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    for (const ValueId result : program.nodes[i].results) {
      if (result != ValueId::none && last[static_cast<size_t>(result)] < 0) deaths[i].push_back(result);
    }
  }
  return deaths;
}

c10::IValue Interpreter::place(const Argument& literal) const {
  if (options_.device && literal.get<Device>() != nullptr) return *options_.device;
  return to_ivalue(literal);
}

IValues Interpreter::take_arguments(const Node& node, Environment& environment,
                                    const std::vector<ValueId>& dying) const {
  IValues arguments;
  arguments.reserve(std::max(node.arguments.size(), node.results.size()));
  const auto take = [&](ValueId id) -> c10::IValue {
    c10::IValue& slot = environment[static_cast<size_t>(id)];
    if (std::find(dying.begin(), dying.end(), id) != dying.end() && occurs_once(node, id)) return std::move(slot);
    return slot;
  };
  for (const Argument& argument : node.arguments) {
    if (argument.is_value() || argument.is_list()) {
      arguments.push_back(resolve_argument(argument, take));
    } else {
      arguments.push_back(place(argument));
    }
  }
  return arguments;
}

void Interpreter::run_nodes(const Program& program, Environment& environment, bool outermost) {
  const auto& deaths = find_deaths(program);
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const Node& node = program.nodes[i];
    IValues results = run_node(node, take_arguments(node, environment, deaths[i]));
    LISSOME_CHECK(results.size() == node.results.size(), describe_node(node), " gave ", results.size(),
                  " results, the program has ", node.results.size());
    if (outermost && options_.observe) options_.observe(node, results);
    for (size_t k = 0; k < results.size(); ++k) {
      if (node.results[k] == ValueId::none) continue;
      environment[static_cast<size_t>(node.results[k])] = std::move(results[k]);
    }
    for (const ValueId id : deaths[i]) environment[static_cast<size_t>(id)] = c10::IValue();
  }
}

Interpreter::Environment Interpreter::make_environment(const Program& program, IValues inputs) {
  LISSOME_CHECK(inputs.size() == program.inputs.size(), "a body takes ", program.inputs.size(), " inputs, not ",
                inputs.size());
  Environment environment(program.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    environment[static_cast<size_t>(program.inputs[i].value)] = std::move(inputs[i]);
  }
  for (const Weight& weight : program.weights) {
    environment[static_cast<size_t>(weight.value)] =
        options_.device ? weight.tensor.to(*options_.device) : weight.tensor;
  }
  return environment;
}

namespace {

IValues read_outputs(const Program& program, const IValues& environment) {
  IValues outputs;
  for (const ProgramOutput& output : program.outputs) {
    outputs.push_back(resolve_argument(output.value, [&](ValueId id) { return environment[static_cast<size_t>(id)]; }));
  }
  return outputs;
}

}  // namespace

IValues Interpreter::run_body(const Program& program, IValues inputs) {
  Environment environment = make_environment(program, std::move(inputs));
  run_nodes(program, environment, false);
  return read_outputs(program, environment);
}

IValues Interpreter::run_outermost(const Program& program, IValues inputs) {
  if (options_.device) {
    for (c10::IValue& input : inputs) {
      if (input.isTensor() && !options_.write_state) input = input.toTensor().to(*options_.device);
    }
  }
  Environment environment = make_environment(program, std::move(inputs));
  // Barriers write into their arguments for good; without write_state they get copies.
  if (!options_.write_state) copy_written_sources(program, environment);
  run_nodes(program, environment, true);
  IValues outputs = read_outputs(program, environment);
  if (options_.written != nullptr || options_.write_state) {
    const at::NoGradGuard no_grad;
    const std::vector<at::Tensor> written = collect_written(program, environment);
    if (options_.written != nullptr) *options_.written = written;
    if (options_.write_state) store_written(program, written, environment, outputs);
  }
  return outputs;
}

std::vector<c10::IValue> interpret(const Program& program, std::vector<c10::IValue> inputs,
                                   const InterpretOptions& options) {
  register_ops();
  check_requirements(program, bind_dimensions(program, inputs));
  const c10::AutoGradMode mode(options.gradients);
  return Interpreter(options).run_outermost(program, std::move(inputs));
}

std::vector<c10::IValue> interpret_node(const Node& node, std::span<const c10::IValue> arguments) {
  register_ops();
  const InterpretOptions options{.gradients = c10::GradMode::is_enabled()};
  return Interpreter(options).run_node(node, IValues(arguments.begin(), arguments.end()));
}

}  // namespace lissome

// Control nodes of an interpretation: conditions, loops, maps and scans over child programs, and regions that switch
// gradients or autocast for their body.
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/stack.h>

#include "lissome/program/interpret/interpret_vmap.h"
#include "lissome/program/interpret/interpreter.h"

namespace lissome {
namespace {

bool read_condition(const c10::IValue& value) {
  return value.isTensor() ? value.toTensor().item().toBool() : value.toScalar().toBool();
}

size_t take_count(IValues& arguments) {
  const int64_t count = arguments.at(0).toInt();
  arguments.erase(arguments.begin());
  LISSOME_CHECK(count >= 0 && static_cast<size_t>(count) <= arguments.size(), "count ", count);
  return static_cast<size_t>(count);
}

// Stacks what each step gave, one tensor a column.
IValues stack_columns(std::vector<std::vector<at::Tensor>> columns) {
  IValues stacked;
  for (const auto& column : columns) stacked.emplace_back(at::stack(column));
  return stacked;
}

int64_t count_slices(const IValues& arguments, size_t first, size_t count) {
  LISSOME_CHECK(count > 0, "a map over nothing");
  const int64_t slices = arguments[first].toTensor().size(0);
  for (size_t i = first; i < first + count; ++i) {
    if (arguments[i].toTensor().size(0) != slices) {
      throw_error(ErrorKind::invalid_input, "operands to map over have ", slices, " and ",
                  arguments[i].toTensor().size(0), " slices");
    }
  }
  if (slices == 0) throw_error(ErrorKind::invalid_input, "there are no slices to run over: the first size is 0");
  return slices;
}

// "autocast=cpu,bf16,1"
struct AutocastMode {
  at::DeviceType device = at::kCPU;
  std::optional<at::ScalarType> dtype;
  bool enabled = false;
};

AutocastMode parse_autocast(const std::string& text) {
  const std::vector<std::string> parts = split(text.substr(text.find('=') + 1), ',');
  LISSOME_CHECK(parts.size() >= 3, "region mode '", text, "'");
  AutocastMode mode{c10::Device(parts[0]).type(), std::nullopt, parts[2] == "1"};
  if (const auto dtype = parse_dtype(parts[1])) mode.dtype = scalar_type_of(*dtype);
  return mode;
}

class AutocastGuard {
 public:
  explicit AutocastGuard(const AutocastMode& mode)
      : device_(mode.device),
        enabled_(at::autocast::is_autocast_enabled(mode.device)),
        dtype_(at::autocast::get_autocast_dtype(mode.device)) {
    if (mode.dtype) at::autocast::set_autocast_dtype(device_, *mode.dtype);
    at::autocast::set_autocast_enabled(device_, mode.enabled);
    at::autocast::increment_nesting();
  }
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;
  ~AutocastGuard() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, enabled_);
    at::autocast::set_autocast_dtype(device_, dtype_);
  }

 private:
  at::DeviceType device_;
  bool enabled_;
  at::ScalarType dtype_;
};

}  // namespace

IValues Interpreter::run_control(const Node& node, IValues arguments) {
  switch (node.op.control()) {
    case Control::cond: return run_cond(node, std::move(arguments));
    case Control::while_loop: return run_while_loop(node, std::move(arguments));
    case Control::map: return run_map(node, std::move(arguments));
    case Control::scan: return run_scan(node, std::move(arguments));
    case Control::region: return run_region(node, std::move(arguments));
    case Control::none: break;
  }
  throw_error(ErrorKind::internal, "a node without an op");
}

IValues Interpreter::run_cond(const Node& node, IValues arguments) {
  LISSOME_CHECK(node.bodies.size() == 2, "cond has ", node.bodies.size(), " bodies");
  const bool chosen = read_condition(arguments.at(0));
  arguments.erase(arguments.begin());
  return run_body(*node.bodies[chosen ? 0 : 1], std::move(arguments));
}

IValues Interpreter::run_while_loop(const Node& node, IValues arguments) {
  LISSOME_CHECK(node.bodies.size() == 2, "while_loop has ", node.bodies.size(), " bodies");
  const size_t carried = take_count(arguments);
  while (read_condition(run_body(*node.bodies[0], arguments).at(0))) {
    IValues next = run_body(*node.bodies[1], arguments);
    LISSOME_CHECK(next.size() == carried, "a loop body gave ", next.size(), " values for ", carried);
    std::move(next.begin(), next.end(), arguments.begin());
  }
  arguments.resize(carried);
  return arguments;
}

IValues Interpreter::run_map(const Node& node, IValues arguments) {
  LISSOME_CHECK(node.bodies.size() == 1, "map has ", node.bodies.size(), " bodies");
  const size_t mapped = take_count(arguments);
  const int64_t slices = count_slices(arguments, 0, mapped);
  std::vector<std::vector<at::Tensor>> columns(node.bodies[0]->outputs.size());
  for (int64_t step = 0; step < slices; ++step) {
    IValues inputs = arguments;
    for (size_t i = 0; i < mapped; ++i) inputs[i] = arguments[i].toTensor().select(0, step);
    const IValues results = run_body(*node.bodies[0], std::move(inputs));
    for (size_t i = 0; i < results.size(); ++i) columns[i].push_back(results[i].toTensor());
  }
  return stack_columns(std::move(columns));
}

IValues Interpreter::run_scan(const Node& node, IValues arguments) {
  LISSOME_CHECK(node.bodies.size() == 1 && arguments.size() >= 3, "scan has ", node.bodies.size(), " bodies");
  const auto carried = static_cast<size_t>(arguments[0].toInt()), scanned = static_cast<size_t>(arguments[1].toInt());
  const bool reverse = read_condition(arguments[2]);
  arguments.erase(arguments.begin(), arguments.begin() + 3);
  LISSOME_CHECK(carried + scanned <= arguments.size(), "scan over ", carried, " and ", scanned, " values");
  const int64_t slices = count_slices(arguments, carried, scanned);
  const size_t outputs = node.bodies[0]->outputs.size();
  LISSOME_CHECK(outputs >= carried, "a scan body gave ", outputs, " values for ", carried);
  std::vector<std::vector<at::Tensor>> columns(outputs - carried);
  for (int64_t step = 0; step < slices; ++step) {
    IValues inputs = arguments;
    for (size_t i = carried; i < carried + scanned; ++i) {
      inputs[i] = arguments[i].toTensor().select(0, reverse ? slices - 1 - step : step);
    }
    IValues results = run_body(*node.bodies[0], std::move(inputs));
    for (size_t i = 0; i < carried; ++i) arguments[i] = std::move(results[i]);
    for (size_t i = carried; i < outputs; ++i) columns[i - carried].push_back(results[i].toTensor());
  }
  IValues results(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(carried));
  for (c10::IValue& stacked : stack_columns(std::move(columns))) {
    // Slices stand at the places that they came from, whichever way the scan went.
    results.push_back(reverse ? c10::IValue(at::flip(stacked.toTensor(), {0})) : std::move(stacked));
  }
  return results;
}

IValues Interpreter::run_region(const Node& node, IValues arguments) {
  LISSOME_CHECK(node.bodies.size() == 1, "a region has ", node.bodies.size(), " bodies");
  const std::string mode = arguments.at(0).toStringRef();
  arguments.erase(arguments.begin());
  const Program& body = *node.bodies[0];
  if (mode.starts_with("grad=")) {
    const c10::AutoGradMode guard(options_.gradients && mode == "grad=1");
    return run_body(body, std::move(arguments));
  }
  if (mode.starts_with("vmap=")) {
    return run_vmapped(mode, std::move(arguments), [&](IValues inputs) { return run_body(body, std::move(inputs)); });
  }
  LISSOME_CHECK(mode.starts_with("autocast="), "region mode '", mode, "'");
  const AutocastGuard guard(parse_autocast(mode));
  return run_body(body, std::move(arguments));
}

}  // namespace lissome

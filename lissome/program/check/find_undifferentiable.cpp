#include "lissome/program/check/find_undifferentiable.h"

#include <ATen/core/ivalue.h>

#include <algorithm>

namespace lissome {
namespace {

bool is_float_tensor(const Program& program, ValueId value) {
  const ValueType& type = program.value(value).type;
  return type.kind == ValueKind::tensor && is_floating(type.dtype);
}

// By nodes that a gradient may go through: who asks for a size alone is none.
std::vector<bool> find_read_values(const Program& program) {
  std::vector<bool> read(program.values.size());
  const std::function<void(const Argument&)> mark = [&](const Argument& argument) {
    if (argument.is_value()) read[static_cast<size_t>(argument.value())] = true;
    if (argument.is_list()) {
      for (const Argument& item : argument.list()) mark(item);
    }
  };
  for (const Node& node : program.nodes) {
    const bool passes_gradients = std::any_of(node.results.begin(), node.results.end(),
                                              [&](ValueId result) { return is_float_tensor(program, result); });
    if (!passes_gradients) continue;
    for (const Argument& argument : node.arguments) mark(argument);
  }
  return read;
}

ValueId add_sum(Program& program, ValueId value) {
  ValueType scalar = program.value(value).type;
  scalar.sizes.clear();
  return program.add_node(Op::find("aten::sum"), {value}, {scalar}).result();
}

// The first `count` nodes; their loss is the sum of the f32 values that none of them reads, none where there is none.
Program cut(const Program& program, size_t count) {
  Program part = program;
  part.nodes.resize(count);
  part.outputs.clear(), part.writes.clear();
  const std::vector<bool> read = find_read_values(part);
  ValueId loss = ValueId::none;
  for (size_t i = 0; i < count; ++i) {
    const std::vector<ValueId> results = part.nodes[i].results;
    for (const ValueId result : results) {
      const ValueType& type = part.value(result).type;
      if (read[static_cast<size_t>(result)] || type.kind != ValueKind::tensor || type.dtype != Dtype::f32) continue;
      const ValueId sum = add_sum(part, result);
      if (loss == ValueId::none) {
        loss = sum;
      } else {
        const ValueType scalar = part.value(sum).type;
        loss = part.add_node(Op::find("aten::add.Tensor"), {loss, sum}, {scalar}).result();
      }
    }
  }
  if (loss != ValueId::none) part.outputs.push_back({loss, "loss"});
  return part;
}

bool fails(const Program& program, size_t count, const DifferentiationTry& attempt) {
  const Program part = cut(program, count);
  if (part.outputs.empty()) return false;
  try {
    attempt(part);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::unsupported) return true;
    throw;
  }
  return false;
}

// What the user wrote for it; nothing for ops and regions that only switch a mode.
std::string_view name_control(const Node& node) {
  switch (node.op.control()) {
    case Control::cond: return "torch.cond";
    case Control::while_loop: return "torch.while_loop";
    case Control::map: return "torch's map";
    case Control::scan: return "torch's scan";
    case Control::region: return is_vmapped(node) ? "torch.vmap" : "";
    case Control::none: break;
  }
  return "";
}

}  // namespace

std::optional<size_t> find_undifferentiable_node(const Program& program, const DifferentiationTry& attempt) {
  size_t works = 0, breaks = program.nodes.size();
  if (breaks == 0 || !fails(program, breaks, attempt)) return std::nullopt;
  while (breaks - works > 1) {
    const size_t middle = works + (breaks - works) / 2;
    (fails(program, middle, attempt) ? breaks : works) = middle;
  }
  return breaks - 1;
}

std::string describe_layer(const Node& node) {
  const std::string_view control = name_control(node);
  if (control.empty() && (!node.origin || node.origin->module.empty())) return describe_node(node);
  static const Origin unknown;
  const Origin& origin = node.origin ? *node.origin : unknown;
  // Bodies of control ops are traced from code that torch made up: its lines say nothing.
  const bool has_source = !origin.source.empty() && !origin.source.starts_with("<");
  const std::string source = has_source ? " (" + origin.source + ")" : "";
  const std::string type = origin.module_type.empty() ? "module" : origin.module_type;
  const std::string layer = origin.module.empty() ? "" : type + " " + origin.module;
  if (!control.empty()) return std::string(control) + (layer.empty() ? "" : " in " + layer) + source;
  return layer + source + ", " + node.op.name();
}

bool is_vmapped(const Node& node) {
  return node.op.control() == Control::region && node.arguments.at(0).get<std::string>()->starts_with("vmap=");
}

}  // namespace lissome

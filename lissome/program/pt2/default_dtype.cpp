// See default_dtype.h.
#include "lissome/program/pt2/default_dtype.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>

namespace lissome {
namespace {

bool is_tensor(const Program& program, const Argument& argument) {
  return argument.is_value() && program.value(argument.value()).type.kind == ValueKind::tensor;
}

bool has_floating_operand(const Program& program, const Node& node) {
  bool found = false;
  for (const Argument& argument : node.arguments) {
    for_each_value(argument, [&](ValueId id) {
      const ValueType& type = program.value(id).type;
      found = found || (type.kind == ValueKind::tensor && !is_integral(type.dtype) && type.dtype != Dtype::boolean);
    });
  }
  return found;
}

Argument convert(Program& program, const Node& node, ValueId id, Dtype dtype) {
  ValueType type = program.value(id).type;
  type.dtype = dtype;
  return program.add_node(Op::find("aten::to.dtype"), {id, dtype}, {std::move(type)}, node.origin).result();
}

Argument fill(Program& program, const Node& node, const Argument& number, Dtype dtype) {
  const ValueType type{ValueKind::tensor, dtype, true, {}};
  Node& made = program.add_node(Op::find("aten::full"), {ArgumentList(), number}, {type}, node.origin);
  made.argument("dtype") = dtype;
  return made.result();
}

}  // namespace

void write_default_dtype(Program& program, Node& node) {
  if (!node.op.has_schema() || node.results.empty() || node.results[0] == ValueId::none) return;
  const ValueType type = program.value(node.results[0]).type;
  const Dtype dtype = type.dtype;
  const Dtype here = dtype_of(c10::get_default_dtype_as_scalartype());  // Python's torch.set_default_dtype() changes it
  if (type.kind != ValueKind::tensor || !is_floating(dtype) || dtype == here) return;
  if (has_floating_operand(program, node)) return;
  if (node.op.argument_index("dtype") >= 0) {
    Argument& given = node.argument("dtype");
    if (given.is_none()) given = dtype;
    return;
  }
  if (node.is("aten::where.Scalar")) {
    node.arguments[1] = fill(program, node, node.arguments[1], dtype);
    node.arguments[2] = fill(program, node, node.arguments[2], dtype);
    node.op = Op::find("aten::where.self");
    return;
  }
  if (!node.op.handle().hasTag(at::Tag::pointwise) && !node.op.name().starts_with("aten::where.")) return;
  const int condition = node.op.argument_index("condition");
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    Argument& argument = node.arguments[i];
    if (static_cast<int>(i) != condition && is_tensor(program, argument))
      argument = convert(program, node, argument.value(), dtype);
  }
}

}  // namespace lissome

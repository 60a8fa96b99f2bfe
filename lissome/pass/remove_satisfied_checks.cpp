// Checks that hold by what the program says of its values. Exports put one in front of every cast; each counts as a
// reader of the value that it checks.

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

// Dtype, sizes and rank as the value's type has them; strides are no part of it.
bool is_satisfied(Rewriter& rewriter, const Node& node) {
  if (!node.is("aten::_assert_tensor_metadata")) return false;
  const ValueType& type = rewriter.type_of(rewriter.resolve(node.arguments.front()));
  if (type.kind != ValueKind::tensor) return false;
  if (!node.argument("stride").is_none()) return false;
  const Argument& dtype = node.argument("dtype");
  if (!dtype.is_none() && !(dtype == Argument(type.dtype))) return false;
  const Argument& sizes = node.argument("size");
  if (!sizes.is_none()) {
    const auto expected = literal_ints(sizes);
    const auto known = constant_sizes(type);
    if (!expected || !known || *expected != *known) return false;
  }
  const Argument &device = node.argument("device"), &layout = node.argument("layout");
  return (device.is_none() || device == Argument(Device{"cpu"})) &&
         (layout.is_none() || layout == Argument(Layout::strided));
}

bool is_true(const Node& node) {
  const bool asserts =
      node.is("aten::_assert_scalar") || node.is("aten::_assert_async.msg") || node.is("aten::_assert_async");
  return asserts && (node.arguments.front() == Argument(true) || node.arguments.front() == Argument(1));
}

}  // namespace

int remove_satisfied_checks(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    const Node& node = rewriter.node(position);
    if (!node.op.has_schema() || !node.results.empty()) continue;
    if (is_satisfied(rewriter, node) || is_true(node)) rewriter.remove_node(position);
  }
  return rewriter.finish();
}

}  // namespace lissome

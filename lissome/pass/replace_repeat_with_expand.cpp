// A dimension of size one that is repeated need not be copied: every copy is the same memory.
#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

// repeat(x, [n, 1]) of x: [1, m] is expand(x, [n, m]). Every dimension must be repeated once or be of size one, and
// the input must be of known rank; new leading dimensions count as size one.
std::optional<ArgumentList> find_expanded_sizes(Rewriter& rewriter, const Node& node) {
  const Argument input = rewriter.resolve(node.argument("self"));
  const ValueType& type = rewriter.type_of(input);
  const Argument& repeats = node.arguments.at(1);
  if (!repeats.is_list() || !type.sized || repeats.list().size() < type.sizes.size()) return std::nullopt;
  const size_t leading = repeats.list().size() - type.sizes.size();
  ArgumentList sizes;
  for (size_t i = 0; i < repeats.list().size(); ++i) {
    const Argument& times = repeats.list()[i];
    if (i < leading || type.sizes[i - leading] == Dimension(1)) {
      sizes.push_back(times);
    } else if (times == Argument(1)) {
      sizes.push_back(-1);
    } else {
      return std::nullopt;
    }
  }
  return sizes;
}

}  // namespace

int replace_repeat_with_expand(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    const Node& node = rewriter.node(position);
    if (!node.is("aten::repeat") && !node.is("aten::tile")) continue;
    if (const std::optional<ArgumentList> sizes = find_expanded_sizes(rewriter, node)) {
      rewriter.replace_node(position, Op::find("aten::expand"), {node.argument("self"), *sizes});
    }
  }
  return rewriter.finish();
}

}  // namespace lissome

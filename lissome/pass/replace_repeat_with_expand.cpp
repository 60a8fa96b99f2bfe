#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

// repeat(x, [n, 1]) of x: [1, m] is expand(x, [n, m]). Every dimension must be repeated once or be of size one, and
// the input must be of known rank; new leading dimensions count as size one.
std::optional<ArgumentList> find_expanded_sizes(const Program& program, const Node& node) {
  const Argument& input = node.argument("self");
  if (!input.is_value() || !node.argument("repeats").is_list()) return std::nullopt;
  const ValueType& type = program.value(input.value()).type;
  const ArgumentList& repeats = node.argument("repeats").list();
  if (!type.sized || repeats.size() < type.sizes.size()) return std::nullopt;
  const size_t leading = repeats.size() - type.sizes.size();
  ArgumentList sizes;
  for (size_t i = 0; i < repeats.size(); ++i) {
    const bool once = repeats[i] == Argument(1);
    if (i < leading) {
      sizes.push_back(repeats[i]);
    } else if (type.sizes[i - leading] == Dimension(1)) {
      sizes.push_back(repeats[i]);
    } else if (once) {
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
    if (!node.is("aten::repeat")) continue;
    if (const std::optional<ArgumentList> sizes = find_expanded_sizes(program, node)) {
      rewriter.replace_node(position, Op::find("aten::expand"), {node.argument("self"), *sizes});
    }
  }
  return rewriter.finish();
}

}  // namespace lissome

// Needless copies. A pure program cannot tell a copy from its original, but for the few ops that look at memory; where
// a layout is wanted, lowering chooses it.
#include <algorithm>

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {

int remove_copies(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    const Node& node = rewriter.node(position);
    if (!node.is("aten::clone") && !node.is("aten::contiguous")) continue;
    const std::vector<int> readers = rewriter.readers(node.result());
    const bool wanted =
        std::any_of(readers.begin(), readers.end(), [&](int reader) { return reads_memory(rewriter.node(reader)); });
    if (!wanted) rewriter.replace_value(node.result(), node.argument("self"));
  }
  return rewriter.finish();
}

}  // namespace lissome

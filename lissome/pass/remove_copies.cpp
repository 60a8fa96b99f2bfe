// Needless copies. A pure program cannot tell a copy from its original; where a layout is wanted, lowering chooses it.
#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {

int remove_copies(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    const Node& node = rewriter.node(position);
    if (node.is("aten::clone") || node.is("aten::contiguous")) {
      rewriter.replace_value(node.result(), node.argument("self"));
    }
  }
  return rewriter.finish();
}

}  // namespace lissome

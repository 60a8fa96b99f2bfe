// Needless copies and needless casts. A pure program cannot tell a copy from its original.
#include <algorithm>

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

// Every value of `narrow` is a value of `wide`.
bool holds_exactly(Dtype wide, Dtype narrow) {
  if (wide == narrow) return true;
  switch (wide) {
    case Dtype::f64: return narrow == Dtype::f32 || narrow == Dtype::f16 || narrow == Dtype::bf16 || narrow == Dtype::i32;
    case Dtype::f32: return narrow == Dtype::f16 || narrow == Dtype::bf16 || narrow == Dtype::i16 || narrow == Dtype::u8 || narrow == Dtype::i8;
    case Dtype::i64: return narrow == Dtype::i32 || narrow == Dtype::i16 || narrow == Dtype::i8 || narrow == Dtype::u8;
    case Dtype::i32: return narrow == Dtype::i16 || narrow == Dtype::i8 || narrow == Dtype::u8;
    default: return false;
  }
}

bool is_cast(const Node& node) {
  return node.is("aten::to.dtype") || node.is("aten::_to_copy") || node.is("aten::to.dtype_layout");
}

// A cast that changes the dtype alone: no device, layout or memory format asked for that could matter.
bool is_plain_cast(const Program& program, const Node& node) {
  if (!is_cast(node) || !node.arguments.front().is_value()) return false;
  const int device = node.op.argument_index("device");
  if (device >= 0) {
    const Argument& where = node.arguments[static_cast<size_t>(device)];
    if (!where.is_none() && where != Argument(Device{"cpu"})) return false;
  }
  return program.value(node.arguments.front().value()).type.kind == ValueKind::tensor;
}

}  // namespace

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

int remove_casts(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    const Node& outer = rewriter.node(position);
    if (!is_plain_cast(program, outer)) continue;
    const Node* inner = rewriter.producer(outer.arguments.front().value());
    if (inner == nullptr || !is_plain_cast(program, *inner)) continue;
    const Argument source = rewriter.resolve(inner->arguments.front());
    const Dtype from = program.value(source.value()).type.dtype;
    const Dtype through = program.value(inner->result()).type.dtype;
    const Dtype to = program.value(outer.result()).type.dtype;
    if (from == to && holds_exactly(through, from)) rewriter.replace_value(outer.result(), source);
  }
  return rewriter.finish();
}

}  // namespace lissome

// Casts through a dtype that holds every value of the one before: the way there loses nothing and can be left out.
#include <algorithm>
#include <array>

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

struct Holds {
  Dtype wide;
  std::array<Dtype, 7> narrow;  // besides bool, which every dtype holds; filled up with the first
};
constexpr Holds kHolds[] = {
    {Dtype::f64, {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::i32, Dtype::i16, Dtype::i8, Dtype::u8}},
    {Dtype::f32, {Dtype::f16, Dtype::bf16, Dtype::i16, Dtype::i8, Dtype::u8, Dtype::f16, Dtype::f16}},
    {Dtype::i64, {Dtype::i32, Dtype::i16, Dtype::i8, Dtype::u8, Dtype::i32, Dtype::i32, Dtype::i32}},
    {Dtype::i32, {Dtype::i16, Dtype::i8, Dtype::u8, Dtype::i16, Dtype::i16, Dtype::i16, Dtype::i16}},
    {Dtype::i16, {Dtype::i8, Dtype::u8, Dtype::i8, Dtype::i8, Dtype::i8, Dtype::i8, Dtype::i8}},
    {Dtype::f16, {Dtype::i8, Dtype::u8, Dtype::i8, Dtype::i8, Dtype::i8, Dtype::i8, Dtype::i8}},
    {Dtype::bf16, {Dtype::i8, Dtype::u8, Dtype::i8, Dtype::i8, Dtype::i8, Dtype::i8, Dtype::i8}},
};

bool holds_exactly(Dtype wide, Dtype narrow) {
  if (wide == narrow || narrow == Dtype::boolean) return true;
  return std::any_of(std::begin(kHolds), std::end(kHolds), [&](const Holds& row) {
    return row.wide == wide && std::find(row.narrow.begin(), row.narrow.end(), narrow) != row.narrow.end();
  });
}

}  // namespace

int remove_casts(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    const Node& outer = rewriter.node(position);
    if (!outer.is("aten::to.dtype")) continue;
    const Node* inner = rewriter.producer(outer.argument("self"), "aten::to.dtype");
    if (inner == nullptr) continue;
    const Argument source = rewriter.resolve(inner->argument("self"));
    const ValueType& before = rewriter.type_of(source);
    const ValueType& through = rewriter.type_of(inner->result());
    const ValueType& after = rewriter.type_of(outer.result());
    if (before.kind != ValueKind::tensor || through.kind != ValueKind::tensor || after.kind != ValueKind::tensor)
      continue;
    if (!holds_exactly(through.dtype, before.dtype)) continue;
    if (before.dtype == after.dtype) {
      rewriter.replace_value(outer.result(), source);
    } else {
      rewriter.replace_node(position, outer.op, {source, after.dtype});
    }
  }
  return rewriter.finish();
}

}  // namespace lissome

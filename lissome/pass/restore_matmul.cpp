// The decomposed dialect writes a batched product as reshape, bmm, reshape, or repeats one side for it; baddbmm hides a
// scale and a sum. All become matmul, which attention and the other patterns read. Einsum: see restore_einsum.cpp.
#include <algorithm>

#include "lissome/pass/passes.h"
#include "lissome/pass/restore_einsum.h"

namespace lissome {
namespace {

// The value before a reshape that flattened all but the last two dimensions into one.
std::optional<ValueId> find_batched(Rewriter& rewriter, const Argument& flat) {
  const Node* reshape = rewriter.producer(rewriter.resolve(flat), "aten::reshape");
  if (reshape == nullptr) return std::nullopt;
  const Argument source = rewriter.resolve(reshape->argument("self"));
  const ValueType& before = rewriter.type_of(source);
  const ValueType& after = rewriter.type_of(reshape->result());
  if (!before.sized || !after.sized || before.sizes.size() < 4 || after.sizes.size() != 3) return std::nullopt;
  const bool same_matrix = std::equal(before.sizes.end() - 2, before.sizes.end(), after.sizes.end() - 2);
  return same_matrix ? std::optional(source.value()) : std::nullopt;
}

bool restore_batched(Rewriter& rewriter, int position) {
  const Node& outer = rewriter.node(position);
  if (!outer.is("aten::reshape")) return false;
  const Node* bmm = rewriter.producer(rewriter.resolve(outer.argument("self")), "aten::bmm");
  if (bmm == nullptr || !rewriter.has_one_use(bmm->result())) return false;
  const auto left = find_batched(rewriter, bmm->argument("self"));
  const auto right = find_batched(rewriter, bmm->argument("mat2"));
  if (!left || !right) return false;
  const ValueType& a = rewriter.type_of(*left);
  const ValueType& b = rewriter.type_of(*right);
  const ValueType& c = rewriter.type_of(outer.result());
  const size_t rank = a.sizes.size();
  if (b.sizes.size() != rank || !c.sized || c.sizes.size() != rank) return false;
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (!(a.sizes[i] == b.sizes[i]) || !(a.sizes[i] == c.sizes[i])) return false;
  }
  if (!(c.sizes[rank - 2] == a.sizes[rank - 2]) || !(c.sizes[rank - 1] == b.sizes[rank - 1])) return false;
  rewriter.replace_node(position, Op::find("aten::matmul"), {*left, *right});
  return true;
}

// The decomposed dialect repeats a matrix for every element of the batch: one matrix for all of them.
bool share_right_side(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::bmm") && !node.is("aten::matmul")) return false;
  const Argument left = rewriter.resolve(node.arguments[0]);
  const Node* expand = rewriter.producer(rewriter.resolve(node.arguments[1]), "aten::expand");
  if (expand == nullptr) return false;
  const Argument matrix = rewriter.resolve(expand->argument("self"));
  const ValueType &rows = rewriter.type_of(left), &one = rewriter.type_of(matrix),
                  &many = rewriter.type_of(expand->result());
  if (!is_sized_float(rows) || !is_sized_float(one) || !many.sized || one.sizes.size() != 2) return false;
  // The left side has the same batch dimensions, so that the product keeps its sizes.
  if (rows.sizes.size() < 3 || rows.sizes.size() != many.sizes.size()) return false;
  if (!std::equal(rows.sizes.begin(), rows.sizes.end() - 2, many.sizes.begin())) return false;
  if (!std::equal(one.sizes.begin(), one.sizes.end(), many.sizes.end() - 2)) return false;
  rewriter.replace_node(position, Op::find("aten::matmul"), {left, matrix});
  return true;
}

// beta * input + alpha * (batch1 @ batch2) with both numbers and the sum written out.
bool convert_baddbmm(Rewriter& rewriter, int position) {
  const Node node = rewriter.node(position);
  if (!node.is("aten::baddbmm")) return false;
  const auto alpha = constant_number(rewriter, node.argument("alpha"));
  const auto beta = constant_number(rewriter, node.argument("beta"));
  const ValueType type = rewriter.type_of(node.result());
  const Argument input = rewriter.resolve(node.argument("self"));
  if (!alpha || !beta || !is_sized_float(type)) return false;
  // beta = 0 promises that not even a NaN in the input is looked at.
  ValueId sum = rewriter.insert_before(position, Op::find("aten::bmm"),
                                       {node.argument("batch1"), node.argument("batch2")}, {type}, node.origin);
  const Op multiply = Op::find("aten::mul.Tensor");
  if (*beta == 0) {
    rewriter.replace_node(position, multiply, {sum, *alpha});
    return true;
  }
  if (*alpha != 1) sum = rewriter.insert_before(position, multiply, {sum, *alpha}, {type}, node.origin);
  Argument term = input;
  if (*beta != 1) {
    const ValueType term_type = rewriter.type_of(input);
    term = rewriter.insert_before(position, multiply, {input, *beta}, {term_type}, node.origin);
  }
  rewriter.replace_node(position, Op::find("aten::add.Tensor"), {sum, term});
  return true;
}

}  // namespace

int restore_matmul(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    restore_batched(rewriter, position) || restore_einsum(rewriter, position) || convert_baddbmm(rewriter, position) ||
        share_right_side(rewriter, position);
  }
  return rewriter.finish();
}

}  // namespace lissome

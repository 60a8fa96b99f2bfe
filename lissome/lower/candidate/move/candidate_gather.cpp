// Elements chosen by index tensors, and the positions of the largest.
#include <algorithm>

#include "lissome/lower/candidate/move/move_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/runtime/step/elementwise/reduce_steps.h"
#include "lissome/runtime/step/move/gather_steps.h"

namespace lissome {
namespace {

// What a node takes, brought to the form of the step "gather".
struct Taking {
  std::vector<ValueId> indices;
  int64_t dim = -1;  // -1: not of a form that we know
};

int64_t read_dim(const PlanBuilder& builder, const Node& node) {
  return read_dim(node.argument("dim"), builder.type(node.argument("self").value()).sizes.size());
}

// Index tensors that stand beside each other; none before and after them.
Taking read_indexing(const Node& node) {
  Taking taking;
  const Argument& list = node.argument("indices");
  if (!list.is_list()) return {};
  int64_t last = -1;
  for (size_t i = 0; i < list.list().size(); ++i) {
    const Argument& index = list.list()[i];
    if (index.is_none()) continue;
    const auto at = static_cast<int64_t>(i);
    if (!index.is_value() || (last >= 0 && last != at - 1)) return {};
    if (last < 0) taking.dim = at;
    last = at;
    taking.indices.push_back(index.value());
  }
  return taking;
}

Taking read_taking(const PlanBuilder& builder, const Node& node) {
  if (node.is("aten::index.Tensor")) return read_indexing(node);
  return {{node.argument("index").value()}, read_dim(builder, node)};
}

}  // namespace

std::string refuse_gather(const PlanBuilder& builder, const Node& node) {
  const Argument& x = node.argument("self");
  if (!x.is_value()) return "an operand is no tensor";
  const Dtype dtype = builder.type(x.value()).dtype;
  std::string refusal =
      first_refusal({refuse_tensor(builder, x, dtype), refuse_tensor(builder, Argument(node.result()), dtype)});
  if (!refusal.empty()) return refusal;
  if (builder.is_held(x.value())) return "the reference library holds the operand";
  const Taking taking = read_taking(builder, node);
  if (taking.dim < 0 || taking.indices.empty()) return "the indices do not stand beside each other";
  if (taking.indices.size() > static_cast<size_t>(kGatherIndices)) return "there are too many indices";
  for (const ValueId index : taking.indices) {
    const Dtype index_dtype = builder.type(index).dtype;
    if (index_dtype != Dtype::i64 && index_dtype != Dtype::i32) {
      return "an index is " + std::string(dtype_name(index_dtype));
    }
    refusal = refuse_tensor(builder, Argument(index), index_dtype);
    if (!refusal.empty()) return refusal;
  }
  if (node.is("aten::index_select") && builder.type(taking.indices[0]).sizes.size() != 1)
    return "the index is no vector";
  const bool wide = item_size(dtype) > 8 ||
                    builder.type(node.result()).sizes.size() > static_cast<size_t>(kGatherRank) ||
                    builder.type(x.value()).sizes.size() > static_cast<size_t>(kMoveRank);
  if (wide || builder.type(x.value()).sizes.empty()) return "no copy takes it, should one be needed";
  return {};
}

void emit_gather(PlanBuilder& builder, const Node& node) {
  const Taking taking = read_taking(builder, node);
  GatherStep step;
  step.form = node.is("aten::gather") ? "gather" : "index";
  step.dim = taking.dim;
  step.x = {builder.use_dense(node.argument("self"), node)};
  for (const ValueId index : taking.indices) step.add_index(builder.use(index));
  step.y = {builder.make(node.result())};
  builder.add_step(step, node);
}

std::string refuse_find_largest(const PlanBuilder& builder, const Node& node) {
  const Argument& x = node.argument("self");
  const std::string refusal = first_refusal(
      {refuse_tensor(builder, x, Dtype::f32), refuse_tensor(builder, Argument(node.result()), Dtype::i64)});
  if (!refusal.empty()) return refusal;
  if (builder.is_held(x.value())) return "the reference library holds the operand";
  return read_dim(builder, node) < 0 ? "it is over all dimensions, or over a computed one" : "";
}

void emit_find_largest(PlanBuilder& builder, const Node& node) {
  FindLargestStep step;
  step.dim = read_dim(builder, node);
  step.x = {builder.use_dense(node.argument("self"), node)};
  step.positions = {builder.make(node.result())};
  builder.add_step(step, node);
}

}  // namespace lissome

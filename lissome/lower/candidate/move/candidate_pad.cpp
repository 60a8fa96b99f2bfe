// Constant padding, and sums along a dimension, on our own kernels.
#include <cmath>

#include "lissome/lower/candidate/move/move_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/runtime/step/elementwise/reduce_steps.h"
#include "lissome/runtime/step/move/copy_steps.h"

namespace lissome {
namespace {

const Argument& value_of(const Node& node) { return node.argument("value"); }

}  // namespace

std::string refuse_pad(const PlanBuilder& builder, const Node& node) {
  const Argument& x = node.argument("self");
  if (!x.is_value()) return "an operand is no tensor";
  const Dtype dtype = builder.type(x.value()).dtype;
  const std::string refusal =
      first_refusal({refuse_tensor(builder, x, dtype), refuse_tensor(builder, Argument(node.result()), dtype)});
  if (!refusal.empty()) return refusal;
  if (builder.is_held(x.value())) return "the reference library holds the operand";
  if (node.is("aten::pad") && *node.argument("mode").get<std::string>() != "constant")
    return "it does not pad with a constant";
  const auto pads = read_integers(node.argument("pad"));
  const size_t rank = builder.type(x.value()).sizes.size();
  if (!pads || pads->size() % 2 != 0 || pads->size() > 2 * rank) return "the padding is computed";
  if (rank == 0 || rank > static_cast<size_t>(kMoveRank) || item_size(dtype) > 8) return "it has an odd rank or dtype";
  if (value_of(node).is_none()) return {};
  const std::string refused = refuse_number(value_of(node), "value");
  if (!refused.empty()) return refused;
  const double value = read_number(value_of(node));
  if (value == 0 || dtype == Dtype::f32) return {};
  return is_integer_dtype(dtype) && std::fabs(value) <= 1 << 24 && value == std::floor(value)
             ? ""
             : "the value does not fit";
}

void emit_pad(PlanBuilder& builder, const Node& node) {
  const ValueId x = node.argument("self").value();
  const std::vector<int64_t> pads = *read_integers(node.argument("pad"));
  const size_t rank = builder.type(x).sizes.size();
  PadStep step;
  step.before.assign(rank, 0);
  step.after.assign(rank, 0);
  // The last dimension first.
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    step.before[rank - 1 - i] = pads[2 * i];
    step.after[rank - 1 - i] = pads[2 * i + 1];
  }
  const Format format = builder.format(x);
  if (!value_of(node).is_none()) step.value = read_number(value_of(node));
  step.x = {builder.use_dense(x, node, format)};
  step.y = {builder.make(node.result(), Storage::arena, format)};
  builder.add_step(step, node);
}

std::string refuse_cumulate(const PlanBuilder& builder, const Node& node) {
  const Argument& x = node.argument("self");
  const Dtype dtype = builder.type(node.result()).dtype;
  if (dtype != Dtype::f32 && dtype != Dtype::i64) return "the result is " + std::string(dtype_name(dtype));
  const std::string refusal =
      first_refusal({refuse_tensor(builder, x, dtype), refuse_tensor(builder, Argument(node.result()), dtype)});
  if (!refusal.empty()) return refusal;
  if (builder.is_held(x.value())) return "the reference library holds the operand";
  return read_dim(node.argument("dim"), builder.type(x.value()).sizes.size()) < 0 ? "the dimension is computed" : "";
}

void emit_cumulate(PlanBuilder& builder, const Node& node) {
  const ValueId x = node.argument("self").value();
  CumulateStep step;
  step.dim = read_dim(node.argument("dim"), builder.type(x).sizes.size());
  step.x = {builder.use_dense(x, node)};
  step.y = {builder.make(node.result())};
  builder.add_step(step, node);
}

}  // namespace lissome

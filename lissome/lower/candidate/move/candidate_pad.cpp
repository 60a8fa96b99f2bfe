// Padding, and sums along a dimension, on our own kernels.
#include <algorithm>
#include <cmath>

#include "lissome/lower/candidate/move/move_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/runtime/step/elementwise/reduce_steps.h"
#include "lissome/runtime/step/move/copy_steps.h"

namespace lissome {
namespace {

// What stands around x: the word of PadStep::fill; empty for a mode that is none of them.
std::string read_fill(const Node& node) {
  const std::string_view op = node.op.name();
  if (op.starts_with("aten::reflection_pad")) return "reflect";
  if (op.starts_with("aten::replication_pad")) return "replicate";
  if (!node.is("aten::pad")) return "constant";
  const auto* mode = node.argument("mode").get<std::string>();
  return mode != nullptr && is_pad_fill(*mode) ? *mode : "";
}

double read_value(const Node& node) {
  if (node.op.argument_index("value") < 0 || node.argument("value").is_none()) return 0;
  return read_number(node.argument("value"));
}

std::string refuse_value(const Node& node, Dtype dtype) {
  if (node.op.argument_index("value") < 0 || node.argument("value").is_none()) return {};
  const std::string refused = refuse_number(node.argument("value"), "value");
  if (!refused.empty()) return refused;
  const double value = read_value(node);
  if (value == 0) return std::signbit(value) ? "the value is -0" : "";
  if (dtype == Dtype::f32) return {};
  return is_integer_dtype(dtype) && std::fabs(value) <= 1 << 24 && value == std::floor(value)
             ? ""
             : "the value does not fit";
}

const Argument& pads_of(const Node& node) {
  return node.argument(node.op.argument_index("pad") < 0 ? "padding" : "pad");
}

}  // namespace

std::string refuse_pad(const PlanBuilder& builder, const Node& node) {
  const Argument& x = node.argument("self");
  if (!x.is_value()) return "an operand is no tensor";
  const Dtype dtype = builder.type(x.value()).dtype;
  const std::string refusal =
      first_refusal({refuse_tensor(builder, x, dtype), refuse_tensor(builder, Argument(node.result()), dtype)});
  if (!refusal.empty()) return refusal;
  if (builder.is_held(x.value())) return "the reference library holds the operand";
  if (read_fill(node).empty()) return "what it pads with is computed";
  const auto pads = read_integers(pads_of(node));
  const size_t rank = builder.type(x.value()).sizes.size();
  if (!pads || pads->size() % 2 != 0 || pads->size() > 2 * rank) return "the padding is computed";
  if (read_fill(node) == "circular" && std::ranges::any_of(*pads, [](int64_t pad) { return pad < 0; }))
    return "what is cut does not take part in wrapping around";
  if (rank == 0 || rank > static_cast<size_t>(kMoveRank) || item_size(dtype) > 8) return "it has an odd rank or dtype";
  return refuse_value(node, dtype);
}

void emit_pad(PlanBuilder& builder, const Node& node) {
  const ValueId x = node.argument("self").value();
  const std::vector<int64_t> pads = *read_integers(pads_of(node));
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
  step.fill = read_fill(node), step.value = read_value(node);
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

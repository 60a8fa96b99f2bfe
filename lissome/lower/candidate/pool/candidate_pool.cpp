// Pooling, means over dimensions and embeddings on our own kernels.
#include <algorithm>

#include "lissome/lower/candidate/elementwise/elementwise_candidates.h"
#include "lissome/lower/candidate/geometry.h"
#include "lissome/lower/candidate/move/move_candidates.h"
#include "lissome/lower/candidate/pool/pool_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/runtime/step/elementwise/reduce_steps.h"
#include "lissome/runtime/step/move/gather_steps.h"
#include "lissome/runtime/step/pool/pool_steps.h"

namespace lissome {
namespace {

bool is_average(const Node& node) { return node.op.name().starts_with("aten::avg_pool"); }
size_t spatial_of(const Node& node) { return node.op.name().ends_with("1d") ? 1 : 2; }

}  // namespace

std::string refuse_pool(const PlanBuilder& builder, const Node& node) {
  const Argument& x = node.argument("self");
  if (!x.is_value()) return "an operand is no tensor";
  const Dtype dtype = builder.type(x.value()).dtype;
  const bool known = dtype == Dtype::f32 || dtype == Dtype::bf16 || (dtype == Dtype::u8 && !is_average(node));
  if (!known) return "x is " + std::string(dtype_name(dtype));
  const std::string refusal =
      first_refusal({refuse_tensor(builder, x, dtype), refuse_tensor(builder, Argument(node.result()), dtype)});
  if (!refusal.empty()) return refusal;
  if (builder.type(x.value()).sizes.size() != spatial_of(node) + 2) return "x has no batch";
  for (const char* name : {"kernel_size", "stride", "padding"}) {
    if (!read_integers(node.argument(name))) return std::string(name) + " is computed";
  }
  if (is_average(node)) {
    if (!node.argument("count_include_pad").get<bool>()) return "count_include_pad is computed";
    if (spatial_of(node) == 2 && !node.argument("divisor_override").is_none() &&
        !node.argument("divisor_override").get<int64_t>()) {
      return "the divisor is computed";
    }
    return {};
  }
  return read_integers(node.argument("dilation")) ? "" : "dilation is computed";
}

void emit_pool(PlanBuilder& builder, const Node& node) {
  const size_t spatial = spatial_of(node);
  PoolStep step;
  step.window = read_pool_window(node, spatial);
  step.average = is_average(node);
  if (step.average) step.divisor = read_average(node, spatial);
  step.x = {builder.use_dense(node.argument("self"), node, Format::channels_last)};
  step.y = {builder.make(node.result(), Storage::arena, Format::channels_last)};
  builder.add_step(step, node);
}

namespace {

// The run of neighbouring dimensions that a mean or an adaptive pool to one reduces.
struct ReducedDims {
  int64_t first = 0, count = 0;  // count 0: not of that form
};

ReducedDims find_reduced(const PlanBuilder& builder, const Node& node) {
  const auto rank = static_cast<int64_t>(builder.type(node.argument("self").value()).sizes.size());
  std::vector<int64_t> dims;
  if (node.is("aten::adaptive_avg_pool2d")) {
    const auto size = read_integers(node.argument("output_size"));
    if (!size || !std::all_of(size->begin(), size->end(), [](int64_t n) { return n == 1; }) || rank != 4) return {};
    return {2, 2};
  }
  const bool whole = node.op.argument_index("dim") < 0 || node.argument("dim").is_none();
  const auto given = whole ? std::vector<int64_t>() : read_integers(node.argument("dim"));
  if (!given) return {};
  // None, and an empty list, mean all.
  if (given->empty()) return {0, rank};
  for (const int64_t dim : *given) dims.push_back(dim < 0 ? dim + rank : dim);
  std::sort(dims.begin(), dims.end());
  for (size_t i = 1; i < dims.size(); ++i) {
    if (dims[i] != dims[i - 1] + 1) return {};
  }
  return {dims.front(), static_cast<int64_t>(dims.size())};
}

std::string_view name_reduction(const Node& node) {
  if (node.is("aten::sum") || node.is("aten::sum.dim_IntList")) return "sum";
  if (node.is("aten::linalg_vector_norm")) return "norm";
  if (node.is("aten::amax")) return "maximum";
  return node.is("aten::amin") ? "minimum" : "mean";
}

}  // namespace

std::string refuse_mean(const PlanBuilder& builder, const Node& node) {
  const Argument& x = node.argument("self");
  if (!x.is_value()) return "an operand is no tensor";
  const Dtype dtype = builder.type(x.value()).dtype == Dtype::bf16 ? Dtype::bf16 : Dtype::f32;
  const std::string refusal =
      first_refusal({refuse_tensor(builder, x, dtype), refuse_tensor(builder, Argument(node.result()), dtype)});
  if (!refusal.empty()) return refusal;
  if (builder.is_held(x.value())) return "the reference library holds the operand";
  if (builder.type(x.value()).sizes.empty()) return "x has no dimension";
  if (node.is("aten::linalg_vector_norm") && node.argument("ord") != Argument(2) &&
      node.argument("ord") != Argument(2.0)) {
    return "it is no square norm";
  }
  return find_reduced(builder, node).count > 0 ? "" : "the dimensions are no run of neighbours";
}

void emit_mean(PlanBuilder& builder, const Node& node) {
  const ValueId x = node.argument("self").value();
  const ReducedDims dims = find_reduced(builder, node);
  const auto rank = static_cast<int64_t>(builder.type(x).sizes.size());
  // Height and width of channels-last values are neighbours in memory too; anything else is brought into row order.
  const bool last = builder.format(x) == Format::channels_last && dims.first == 2 && dims.count == rank - 2;
  ReduceStep step;
  step.reduction = name_reduction(node);
  step.first = dims.first, step.count = dims.count;
  step.channels_last = last;
  step.x = {builder.use_dense(x, node, last ? Format::channels_last : Format::row_major)};
  step.y = {builder.make(node.result())};
  builder.add_step(step, node);
}

std::string refuse_embedding(const PlanBuilder& builder, const Node& node) {
  const Argument& indices = node.argument("indices");
  if (!indices.is_value()) return "an operand is no tensor";
  const Dtype dtype = builder.type(indices.value()).dtype;
  if (dtype != Dtype::i64 && dtype != Dtype::i32) return "indices are " + std::string(dtype_name(dtype));
  const Dtype rows = builder.type(node.result()).dtype == Dtype::bf16 ? Dtype::bf16 : Dtype::f32;
  const Argument& table = node.argument("weight");
  if (builder.constant(table.value()) == nullptr) {
    const std::string refusal = refuse_tensor(builder, table, rows);
    if (!refusal.empty()) return refusal;
    if (builder.type(table.value()).sizes.size() != 2) return "the table is no matrix";
  } else {
    const std::string refusal = refuse_weight(builder, table, rows, 2);
    if (!refusal.empty()) return refusal;
  }
  return first_refusal({refuse_tensor(builder, indices, dtype), refuse_tensor(builder, Argument(node.result()), rows)});
}

void emit_embedding(PlanBuilder& builder, const Node& node) {
  GatherRowsStep step;
  step.table = {builder.use_dense(node.argument("weight"), node)};
  step.indices = {builder.use_dense(node.argument("indices"), node)};
  step.y = {builder.make(node.result())};
  builder.add_step(step, node);
}

}  // namespace lissome

// Shapes, orders and parts as views of native memory, without moving anything. What the reference library holds stays
// there: its views cost no crossing.
#include <algorithm>
#include <numeric>

#include "lissome/lower/candidate/elementwise/elementwise_candidates.h"
#include "lissome/lower/candidate/move/move_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/runtime/step/move/view_steps.h"

namespace lissome {
namespace {

std::string refuse_view(const PlanBuilder& builder, const Node& node) {
  const Argument& x = node.arguments.front();
  if (!x.is_value()) return "an operand is no tensor";
  if (builder.is_held(x.value())) return "the reference library holds the operand";
  const ValueType& type = builder.type(x.value());
  const Dtype dtype = type.dtype;
  if (item_size(dtype) > 8 || type.sizes.size() > 6) return "no copy takes it, should one be needed";
  return first_refusal({refuse_tensor(builder, x, dtype), refuse_tensor(builder, Argument(node.result()), dtype)});
}

// The order of dimensions that transpose or permute asks for; empty when it is not literal.
std::vector<int64_t> read_order(const PlanBuilder& builder, const Node& node) {
  std::vector<int64_t> order(builder.type(node.arguments.front().value()).sizes.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  if (node.is("aten::transpose.int")) {
    const int64_t first = read_dim(node.argument("dim0"), order.size()),
                  second = read_dim(node.argument("dim1"), order.size());
    if (first < 0 || second < 0) return {};
    std::swap(order[static_cast<size_t>(first)], order[static_cast<size_t>(second)]);
    return order;
  }
  const Argument& dims = node.argument("dims");
  if (!dims.is_list() || dims.list().size() != order.size()) return {};
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = read_dim(dims.list()[i], order.size());
    if (order[i] < 0) return {};
  }
  return order;
}

// Only the last dimension is split: no order in memory matters for that.
bool splits_last(const PlanBuilder& builder, const Node& node) {
  const std::vector<Dimension>& from = builder.type(node.arguments.front().value()).sizes;
  const std::vector<Dimension>& to = builder.type(node.result()).sizes;
  return !from.empty() && to.size() >= from.size() && std::equal(from.begin(), from.end() - 1, to.begin());
}

// Height and width of a channels-last value become one dimension: pixels lie one behind the other.
bool merges_pixels(const PlanBuilder& builder, const Node& node) {
  const ValueId x = node.arguments.front().value();
  const std::vector<Dimension>&from = builder.type(x).sizes, &to = builder.type(node.result()).sizes;
  return builder.format(x) == Format::channels_last && !builder.is_strided_view(x) && from.size() == 4 &&
         to.size() == 3 && from[0] == to[0] && from[1] == to[1];
}

// [N, C, H, W] becomes [N, C1, C2, H, W], or the other way round.
bool regroups_channels(const std::vector<Dimension>& whole, const std::vector<Dimension>& groups) {
  return whole.size() == 4 && groups.size() == 5 && whole[0] == groups[0] && whole[2] == groups[3] &&
         whole[3] == groups[4];
}

bool splits_channels(const PlanBuilder& builder, const Node& node) {
  const ValueId x = node.arguments.front().value();
  return builder.nearest_format(x) == Format::channels_last &&
         regroups_channels(builder.type(x).sizes, builder.type(node.result()).sizes);
}

// Groups of channels that lie inside of pixels, as after a split.
bool merges_channels(const PlanBuilder& builder, const Node& node) {
  const ValueId x = node.arguments.front().value();
  if (!regroups_channels(builder.type(node.result()).sizes, builder.type(x).sizes)) return false;
  const std::vector<int64_t> order = builder.memory_order(x);
  return order[0] == 0 && order[3] == 1 && order[4] == 2;
}

// The dimensions of `sizes` in another order.
std::vector<Dimension> pick_sizes(const std::vector<Dimension>& sizes, const std::vector<int64_t>& order) {
  std::vector<Dimension> picked;
  for (const int64_t dim : order) picked.push_back(sizes[static_cast<size_t>(dim)]);
  return picked;
}

ValueId add_like(PlanBuilder& builder, const Node& node, const char* suffix, std::vector<Dimension> sizes) {
  const ValueId y = node.result();
  return builder.add_value(builder.program().value(y).name + suffix, builder.type(y).dtype, std::move(sizes));
}

// y's dimension i is x's dimension order[i].
void emit_turned(PlanBuilder& builder, const Node& node, ValueId x, const std::vector<int64_t>& order, ValueId y) {
  builder.add_view({.x = {builder.use(x)}, .form = "permute", .dims = order}, node, y);
  const std::vector<int64_t> before = builder.memory_order(x);
  std::vector<int64_t> after;
  for (const int64_t dim : order) after.push_back(before[static_cast<size_t>(dim)]);
  const auto last = static_cast<int64_t>(order.size()) - 1;
  const bool keeps_last = order.empty() || order.back() == last;
  if (builder.is_part(x)) {
    builder.mark_part(y, std::move(after), keeps_last && builder.has_dense_rows(x));
  } else {
    builder.mark_permuted(y, std::move(after), keeps_last && (order.empty() || before.back() == last));
  }
}

// Pixels first, where channels are the last dimension, then back: nothing moves.
void emit_split_channels(PlanBuilder& builder, const Node& node) {
  const ValueId x = node.arguments.front().value();
  const std::vector<Dimension> groups = builder.type(node.result()).sizes;
  const ValueId pixels = add_like(builder, node, ".pixels", pick_sizes(builder.type(x).sizes, {0, 2, 3, 1}));
  emit_turned(builder, node, x, {0, 2, 3, 1}, pixels);
  const ValueId split = add_like(builder, node, ".split", pick_sizes(groups, {0, 3, 4, 1, 2}));
  builder.add_view({.x = {builder.use(pixels)}, .form = "split"}, node, split);
  if (builder.is_part(x)) builder.mark_part(split, {}, builder.has_dense_rows(pixels));
  emit_turned(builder, node, split, {0, 3, 4, 1, 2}, node.result());
}

// One copy inside of pixels, where their channels are not in order, in place of one to rows and one back.
void emit_merge_channels(PlanBuilder& builder, const Node& node) {
  const ValueId x = node.arguments.front().value();
  const std::vector<Dimension> whole = builder.type(node.result()).sizes;
  const ValueId split = add_like(builder, node, ".split", pick_sizes(builder.type(x).sizes, {0, 3, 4, 1, 2}));
  emit_turned(builder, node, x, {0, 3, 4, 1, 2}, split);
  const ValueId pixels = add_like(builder, node, ".pixels", pick_sizes(whole, {0, 2, 3, 1}));
  builder.add_view({.x = {builder.use_dense(split, node)}, .form = "reshape"}, node, pixels);
  emit_turned(builder, node, pixels, {0, 3, 1, 2}, node.result());
}

}  // namespace

bool cuts_runs(const PlanBuilder& builder, ValueId x, int64_t dim) {
  return builder.has_even_runs(x) && builder.is_innermost(x, dim);
}

std::string refuse_same_cast(const PlanBuilder& builder, const Node& node) {
  const std::string refusal = refuse_view(builder, node);
  if (!refusal.empty()) return refusal;
  const ValueId x = node.arguments.front().value();
  if (builder.type(x).dtype != builder.type(node.result()).dtype) return "it converts";
  return builder.format(x) == Format::row_major && !builder.is_strided_view(x) ? "" : "x is not dense in row order";
}

std::string refuse_reshape(const PlanBuilder& builder, const Node& node) { return refuse_view(builder, node); }

void emit_reshape(PlanBuilder& builder, const Node& node) {
  const ValueId x = node.arguments.front().value();
  if (builder.is_strided_view(x) && splits_last(builder, node)) {
    builder.add_view({.x = {builder.use(x)}, .form = "split"}, node, node.result());
    builder.mark_part(node.result(), {}, builder.has_dense_rows(x));
    return;
  }
  if (splits_channels(builder, node)) return emit_split_channels(builder, node);
  if (merges_channels(builder, node)) return emit_merge_channels(builder, node);
  if (merges_pixels(builder, node)) {
    builder.add_view({.x = {builder.use(x)}, .form = "merge"}, node, node.result());
    builder.mark_permuted(node.result(), {0, 2, 1}, false);
    return;
  }
  builder.add_view({.x = {builder.use_dense(x, node)}, .form = "reshape"}, node, node.result());
}

std::string refuse_permute(const PlanBuilder& builder, const Node& node) {
  const std::string refusal = refuse_view(builder, node);
  if (!refusal.empty()) return refusal;
  return read_order(builder, node).empty() ? "the order is computed" : "";
}

void emit_permute(PlanBuilder& builder, const Node& node) {
  emit_turned(builder, node, node.arguments.front().value(), read_order(builder, node), node.result());
}

namespace {

// A number that is the size of a tensor, as where a growing cache ends.
struct Measured {
  ValueId value = ValueId::none;
  int64_t dim = -1;  // -1: it is something else
};

Measured find_measured(const PlanBuilder& builder, const Argument& number) {
  if (!number.is_value()) return {};
  for (const Node& node : builder.program().nodes) {
    if (!node.is("aten::sym_size.int") || node.result() != number.value()) continue;
    const Argument &x = node.argument("self"), &dim = node.argument("dim");
    if (!x.is_value() || !dim.get<int64_t>() || builder.is_held(x.value()) || !builder.is_sized(x.value())) return {};
    const auto rank = static_cast<int64_t>(builder.type(x.value()).sizes.size());
    const int64_t at = *dim.get<int64_t>();
    return at < -rank || at >= rank ? Measured{} : Measured{x.value(), at < 0 ? at + rank : at};
  }
  return {};
}

}  // namespace

std::string refuse_slice(const PlanBuilder& builder, const Node& node) {
  const std::string refusal = refuse_view(builder, node);
  if (!refusal.empty()) return refusal;
  if (read_dim(node.argument("dim"), builder.type(node.arguments.front().value()).sizes.size()) < 0)
    return "the dimension is computed";
  const bool select = node.is("aten::select.int");
  const Argument& start = node.argument(select ? "index" : "start");
  if (!start.is_none() && !start.get<int64_t>() && find_measured(builder, start).dim < 0)
    return "the start is computed";
  if (!select && (!node.argument("step").get<int64_t>() || *node.argument("step").get<int64_t>() <= 0)) {
    return "the step is computed";
  }
  return {};
}

void emit_slice(PlanBuilder& builder, const Node& node) {
  const bool select = node.is("aten::select.int");
  const Argument& start = node.argument(select ? "index" : "start");
  const ValueId x = node.arguments.front().value();
  const int64_t dim = read_dim(node.argument("dim"), builder.type(x).sizes.size());
  const bool has_dense_rows = builder.has_dense_rows(x);
  ViewStep view;
  view.form = select ? "select" : "slice";
  view.dim = dim;
  if (const auto* number = start.get<int64_t>()) (select ? view.index : view.start) = *number;
  if (!select) view.step = *node.argument("step").get<int64_t>();
  view.x = {builder.use(x)};
  const Measured measured = find_measured(builder, start);
  if (measured.dim >= 0) {
    view.measured = {builder.use(measured.value)};
    view.measured_dim = measured.dim;
  }
  builder.add_view(view, node, node.result());
  const bool cuts_last = dim + 1 == static_cast<int64_t>(builder.type(x).sizes.size());
  const bool keeps_rows = !cuts_last || (!select && view.step == 1);
  builder.mark_part(node.result(), select ? std::vector<int64_t>{} : builder.memory_order(x),
                    keeps_rows && has_dense_rows);
  const bool keeps_runs = cuts_runs(builder, x, dim) || (builder.has_even_runs(x) && builder.is_outermost(x, dim));
  if (!select && view.step == 1 && keeps_runs) builder.mark_even_runs(node.result());
}

std::string refuse_expand(const PlanBuilder& builder, const Node& node) { return refuse_view(builder, node); }

void emit_expand(PlanBuilder& builder, const Node& node) {
  const ValueId x = node.arguments.front().value();
  const bool has_dense_rows = builder.has_dense_rows(x);
  const std::vector<Dimension>&from = builder.type(x).sizes, &to = builder.type(node.result()).sizes;
  const bool keeps_rows = !from.empty() && !to.empty() && from.back() == to.back();
  builder.add_view({.x = {builder.use(x)}, .form = "expand"}, node, node.result());
  builder.mark_part(node.result(), {}, keeps_rows && has_dense_rows);
}

}  // namespace lissome

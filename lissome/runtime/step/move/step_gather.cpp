// gather: operands x (dense in row order) and 1 to 4 index tensors (i64 or i32). Attribute "form":
//   index (dim: the indices broadcast to each other and stand for the dimensions of x from dim on; negative ones count
//   from the end) · gather (dim: one index of the result's sizes)
// find_largest: positions of the largest along `dim`.
#include <algorithm>

#include "lissome/runtime/step/step_rows.h"
#include "lissome/runtime/step/step_schema.h"

namespace lissome {
namespace {

bool is_gather_form(std::string_view word) { return word == "index" || word == "gather"; }

constexpr ValueRule kGatherOperands[] = {
    {"x", DtypeSet::all()},
    {"index", {Dtype::i64, Dtype::i32}, ValueLayout::any},
    {"another index", {Dtype::i64, Dtype::i32}, ValueLayout::any, Presence::repeated},
};
constexpr ValueRule kGatherResults[] = {{"y", DtypeSet::all()}};
constexpr AttributeRule kGatherAttributes[] = {text_rule("form", is_gather_form, true), dimension_rule("dim", true)};
constexpr ValueRule kFindLargestOperands[] = {{"x", {Dtype::f32}}};
constexpr ValueRule kFindLargestResults[] = {{"positions", {Dtype::i64}}};
constexpr AttributeRule kFindLargestAttributes[] = {dimension_rule("dim", true)};

constexpr StepSchema kGatherSchemas[] = {
    {"find_largest", kFindLargestOperands, kFindLargestResults, kFindLargestAttributes},
    {"gather", kGatherOperands, kGatherResults, kGatherAttributes},
};

// The sizes that operands 1.. broadcast to.
Sizes broadcast_indices(const StepBinder& binder, size_t count) {
  Sizes sizes;
  for (size_t i = 0; i < count; ++i) {
    const Sizes& more = binder.operand(i + 1).sizes;
    if (more.size() > sizes.size()) sizes.insert(sizes.begin(), more.size() - sizes.size(), 1);
    for (size_t d = 0; d < more.size(); ++d) {
      int64_t& size = sizes[sizes.size() - more.size() + d];
      binder.require(size == more[d] || size == 1 || more[d] == 1, "indices do not broadcast");
      if (size == 1) size = more[d];
    }
  }
  return sizes;
}

void read_index(const StepBinder& binder, GatherCall& call, size_t i, size_t first, size_t rank) {
  const PlacedValue& index = binder.operand(i + 1);
  call.narrow[i] = index.dtype == Dtype::i32;
  const size_t added = rank - index.sizes.size();
  for (size_t d = 0; d < index.sizes.size(); ++d) {
    call.index_strides[i][first + added + d] = index.sizes[d] == 1 ? 0 : index.strides[d];
  }
}

void read_indexing(const StepBinder& binder, GatherCall& call, size_t dim, size_t count) {
  const PlacedValue& x = binder.operand(0);
  binder.require(dim + count <= x.sizes.size(), "there are fewer dimensions than indices");
  const Sizes chosen = broadcast_indices(binder, count);
  const Sizes strides = contiguous_strides(x.sizes);
  Sizes sizes(x.sizes.begin(), x.sizes.begin() + static_cast<std::ptrdiff_t>(dim));
  sizes.insert(sizes.end(), chosen.begin(), chosen.end());
  sizes.insert(sizes.end(), x.sizes.begin() + static_cast<std::ptrdiff_t>(dim + count), x.sizes.end());
  binder.require(sizes.size() <= kGatherRank, "more than ", kGatherRank, " dimensions");
  call.rank = static_cast<int>(sizes.size());
  for (size_t d = 0; d < sizes.size(); ++d) {
    call.sizes[d] = sizes[d];
    if (d < dim) call.x_strides[d] = strides[d];
    if (d >= dim + chosen.size()) call.x_strides[d] = strides[d - chosen.size() + count];
  }
  for (size_t i = 0; i < count; ++i) {
    call.steps[i] = strides[dim + i], call.limits[i] = x.sizes[dim + i];
    read_index(binder, call, i, dim, chosen.size());
  }
  call.negative_allowed = true;
}

void read_gather(const StepBinder& binder, GatherCall& call, size_t dim) {
  const PlacedValue &x = binder.operand(0), &index = binder.operand(1);
  const size_t rank = x.sizes.size();
  binder.require(rank <= kGatherRank && dim < rank && index.sizes.size() == rank, "the index does not fit");
  const Sizes strides = contiguous_strides(x.sizes);
  call.rank = static_cast<int>(rank);
  for (size_t d = 0; d < rank; ++d) {
    call.sizes[d] = index.sizes[d];
    binder.require(d == dim || index.sizes[d] <= x.sizes[d], "the index is larger than x");
    if (d != dim) call.x_strides[d] = strides[d];
  }
  call.steps[0] = strides[dim], call.limits[0] = x.sizes[dim];
  read_index(binder, call, 0, 0, rank);
}

}  // namespace

std::span<const StepSchema> gather_schemas() { return kGatherSchemas; }

void bind_gather(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  const size_t count = binder.step().operands.size() - 1;
  binder.require(count <= kGatherIndices, count, " indices");
  binder.require(x.dtype == y.dtype && item_size(x.dtype) <= 8, "the dtype changes or is too wide");
  const int64_t dim = binder.attributes().integer("dim");
  GatherCall call;
  call.item = static_cast<int>(item_size(x.dtype));
  call.count = static_cast<int>(count);
  const std::string form = binder.attributes().text("form", "");
  binder.require(form == "index" || count == 1, count, " indices of ", quote(form));
  if (form == "index") {
    read_indexing(binder, call, static_cast<size_t>(dim), count);
  } else {
    read_gather(binder, call, static_cast<size_t>(dim));
  }
  binder.require_sizes(y, Sizes(call.sizes, call.sizes + call.rank));
  if (call.rank == 0) call.sizes[call.rank++] = 1;
  call.fault_code = binder.fault_code();
  binder.set_call("gather", call);
  binder.point(&GatherCall::x, x);
  binder.point(&GatherCall::y, y);
  for (size_t i = 0; i < count; ++i) binder.point_at(&GatherCall::indices, i, binder.operand(i + 1));
  binder.point_fault(&GatherCall::fault);
  const int64_t bytes = y.elements() * call.item;
  binder.set_work(0, 4.0 * static_cast<double>(bytes));
  binder.subtract_bytes(std::max<int64_t>(x.elements() * call.item - bytes, 0));
}

void bind_find_largest(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  const int64_t dim = binder.attributes().integer("dim");
  binder.require(dim < static_cast<int64_t>(x.sizes.size()), "there is no dimension ", dim);
  const auto axis = static_cast<size_t>(dim);
  ReduceCall call;
  for (size_t i = 0; i < axis; ++i) call.outer *= x.sizes[i];
  for (size_t i = axis + 1; i < x.sizes.size(); ++i) call.inner *= x.sizes[i];
  call.count = x.sizes[axis];
  binder.require(y.elements() == call.outer * call.inner, "the result has ", y.elements(), " elements");
  binder.require(call.count > 0 || y.elements() == 0, "there is nothing to choose from");
  binder.set_call("find_largest", call);
  binder.point(&ReduceCall::x, x);
  binder.point(&ReduceCall::positions, y);
  binder.set_work(8.0 * static_cast<double>(x.elements()), 4.0 * static_cast<double>(x.elements()));
}

}  // namespace lissome

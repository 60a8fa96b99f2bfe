#include "lissome/runtime/step/move/gather_steps.h"

#include <algorithm>
#include <span>

#include "lissome/kernel.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

constexpr int64_t kMostPanel = 64;

// The table of rows, or the size of one that a linear packed.
Sizes read_table(const StepBinder& binder, const GatherRowsStep& step, GatherRowsCall& call) {
  const PlacedValue& table = binder.value(step.table);
  const int64_t rows = step.rows, columns = step.columns;
  binder.require((rows == 0) == (columns == 0), "a packed table needs rows and columns");
  if (rows == 0) {
    binder.require(table.sizes.size() == 2, "the table must have 2 dimensions");
    return table.sizes;
  }
  binder.require_product({rows + kMostPanel, columns + kMostPanel, 4});
  const bool wide = table.dtype == Dtype::f32;
  binder.require(wide || table.dtype == Dtype::bf16, "a packed table is f32 or bf16");
  call.layout = wide ? TableLayout::linear_f32 : TableLayout::linear_bf16;
  binder.require_sizes(table, {wide ? packed_linear_f32_size(rows, columns) : packed_linear_bf16_size(rows, columns)});
  return {rows, columns};
}

void bind_gather_rows(StepBinder& binder, const GatherRowsStep& step) {
  const PlacedValue& table = binder.value(step.table);
  const PlacedValue& indices = binder.value(step.indices);
  const PlacedValue& y = binder.value(step.y);
  GatherRowsCall call;
  const Sizes table_sizes = read_table(binder, step, call);
  binder.require(table.dtype == y.dtype, "a gather changes the dtype");
  Sizes sizes = indices.sizes;
  sizes.push_back(table_sizes[1]);
  binder.require_sizes(y, sizes);
  call.rows = table_sizes[0], call.row_bytes = table_sizes[1] * item_size(table.dtype), call.count = indices.elements();
  call.narrow_indices = indices.dtype == Dtype::i32;
  call.negative_allowed = step.negative_allowed;
  call.fault_code = binder.fault_code();
  binder.set_call("gather_rows", call);
  binder.point(&GatherRowsCall::table, step.table);
  binder.point(&GatherRowsCall::indices, step.indices);
  binder.point(&GatherRowsCall::y, step.y);
  binder.point_fault(&GatherRowsCall::fault);
  binder.set_work(0, 2.0 * static_cast<double>(call.count * call.row_bytes));
  // Of the table only the chosen rows are touched.
  binder.subtract_bytes(table.elements() * item_size(table.dtype) - call.count * call.row_bytes);
}

// The sizes that indices broadcast to.
Sizes broadcast_indices(const StepBinder& binder, std::span<const Operand> indices) {
  Sizes sizes;
  for (const Operand& index : indices) {
    const Sizes& more = binder.value(index).sizes;
    if (more.size() > sizes.size()) sizes.insert(sizes.begin(), more.size() - sizes.size(), 1);
    for (size_t d = 0; d < more.size(); ++d) {
      int64_t& size = sizes[sizes.size() - more.size() + d];
      binder.require(size == more[d] || size == 1 || more[d] == 1, "indices do not broadcast");
      if (size == 1) size = more[d];
    }
  }
  return sizes;
}

// Index i, of which the last dimension is dimension first + rank - 1 of the result.
void read_index(const PlacedValue& index, GatherCall& call, size_t i, size_t first, size_t rank) {
  call.narrow[i] = index.dtype == Dtype::i32;
  const size_t added = rank - index.sizes.size();
  for (size_t d = 0; d < index.sizes.size(); ++d) {
    call.index_strides[i][first + added + d] = index.sizes[d] == 1 ? 0 : index.strides[d];
  }
}

void read_indexing(const StepBinder& binder, const GatherStep& step, GatherCall& call) {
  const PlacedValue& x = binder.value(step.x);
  const std::vector<Operand> indices = step.indices();
  const auto dim = static_cast<size_t>(step.dim);
  const size_t count = indices.size();
  binder.require(dim + count <= x.sizes.size(), "there are fewer dimensions than indices");
  const Sizes chosen = broadcast_indices(binder, indices);
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
    read_index(binder.value(indices[i]), call, i, dim, chosen.size());
  }
  call.negative_allowed = true;
}

void read_gather(const StepBinder& binder, const GatherStep& step, GatherCall& call) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& index = binder.value(step.index);
  const auto dim = static_cast<size_t>(step.dim);
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
  read_index(index, call, 0, 0, rank);
}

void bind_gather(StepBinder& binder, const GatherStep& step) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  const std::vector<Operand> indices = step.indices();
  const size_t count = indices.size();
  binder.require(count <= kGatherIndices, count, " indices");
  binder.require(x.dtype == y.dtype && item_size(x.dtype) <= 8, "the dtype changes or is too wide");
  GatherCall call;
  call.item = static_cast<int>(item_size(x.dtype));
  call.count = static_cast<int>(count);
  binder.require(step.form == "index" || count == 1, count, " indices of ", quote(step.form));
  if (step.form == "index") {
    read_indexing(binder, step, call);
  } else {
    read_gather(binder, step, call);
  }
  binder.require_sizes(y, Sizes(call.sizes, call.sizes + call.rank));
  if (call.rank == 0) call.sizes[call.rank++] = 1;
  call.fault_code = binder.fault_code();
  binder.set_call("gather", call);
  binder.point(&GatherCall::x, step.x);
  binder.point(&GatherCall::y, step.y);
  for (size_t i = 0; i < count; ++i) binder.point_at(&GatherCall::indices, i, binder.value(indices[i]));
  binder.point_fault(&GatherCall::fault);
  const int64_t bytes = y.elements() * call.item;
  binder.set_work(0, 4.0 * static_cast<double>(bytes));
  binder.subtract_bytes(std::max<int64_t>(x.elements() * call.item - bytes, 0));
}

}  // namespace

bool is_gather_form(std::string_view word) { return word == "index" || word == "gather"; }

std::vector<StepRow> list_gather_steps() {
  return {declare_step<GatherRowsStep, bind_gather_rows>(), declare_step<GatherStep, bind_gather>()};
}

}  // namespace lissome

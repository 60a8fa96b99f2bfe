// view: a new shape, order or part of operand 0, without moving anything. Attribute "form":
//   reshape (operand dense in row order) · split (of the last dimension) · merge (of the last two) · permute (dims) ·
//   expand · slice (dim, start, step) · select (dim, index); these two begin at the size of dimension `measured` of
//   operand 1 instead, where that is given
// concat: operands joined along dim, all in the result's format.
// pad: attributes before and after, one number a dimension (negative ones cut), and value. cumulate: along dim.
// copy: operand 0 of any strides made dense, in the result's format. gather_rows: operands table, indices; with
// attributes rows and columns the table is a matrix of these sizes as linear_f32 or linear_bf16 packs it. reduce: dims
// that stand next to each other.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "lissome/runtime/step/step_rows.h"
#include "lissome/runtime/step/step_schema.h"

namespace lissome {
namespace {

// In the order of Reduction.
constexpr std::string_view kReductions[] = {"sum", "mean", "norm", "maximum", "minimum"};
bool is_reduction(std::string_view word) {
  return std::find(std::begin(kReductions), std::end(kReductions), word) != std::end(kReductions);
}
bool is_view_form(std::string_view word) {
  constexpr std::string_view kForms[] = {"reshape", "split", "merge", "permute", "expand", "slice", "select"};
  return std::find(std::begin(kForms), std::end(kForms), word) != std::end(kForms);
}

constexpr ValueRule kViewOperands[] = {{"x", DtypeSet::all(), ValueLayout::any},
                                       {"measured", DtypeSet::all(), ValueLayout::any, Presence::optional}};
constexpr ValueRule kViewResults[] = {{"y", DtypeSet::all(), ValueLayout::any}};
constexpr AttributeRule kViewAttributes[] = {
    text_rule("form", is_view_form, true),
    integers_rule("dims", 0, 63),
    dimension_rule("dim"),
    dimension_rule("measured"),
    integer_rule("start", INT64_MIN, INT64_MAX),
    integer_rule("index", INT64_MIN, INT64_MAX),
    integer_rule("step", 1, INT64_MAX),
};
constexpr ValueRule kCopyOperands[] = {{"x", DtypeSet::all(), ValueLayout::any}};
constexpr ValueRule kDenseOperands[] = {{"x", DtypeSet::all(), ValueLayout::dense}};
constexpr ValueRule kDenseResults[] = {{"y", DtypeSet::all(), ValueLayout::dense}};
constexpr ValueRule kConcatOperands[] = {{"piece", DtypeSet::all(), ValueLayout::dense},
                                         {"another piece", DtypeSet::all(), ValueLayout::dense, Presence::repeated}};
constexpr AttributeRule kConcatAttributes[] = {dimension_rule("dim", true)};
constexpr AttributeRule kPadAttributes[] = {integers_rule("before", -kLargestBytes, kLargestBytes, true),
                                            integers_rule("after", -kLargestBytes, kLargestBytes, true),
                                            any_number_rule("value")};
constexpr ValueRule kCumulateOperands[] = {{"x", {Dtype::f32, Dtype::i64}}};
constexpr ValueRule kCumulateResults[] = {{"y", {Dtype::f32, Dtype::i64}}};
constexpr AttributeRule kCumulateAttributes[] = {dimension_rule("dim", true)};
constexpr int64_t kMostTableSize = int64_t{1} << 40, kMostPanel = 64;
constexpr ValueRule kGatherRowsOperands[] = {{"table", DtypeSet::all()}, {"indices", {Dtype::i64, Dtype::i32}}};
constexpr ValueRule kGatherRowsResults[] = {{"y", DtypeSet::all()}};
constexpr AttributeRule kGatherRowsAttributes[] = {
    flag_rule("negative_allowed"), integer_rule("rows", 1, kMostTableSize), integer_rule("columns", 1, kMostTableSize)};
constexpr ValueRule kReduceOperands[] = {{"x", {Dtype::f32, Dtype::bf16}, ValueLayout::dense}};
constexpr ValueRule kReduceResults[] = {{"y", {Dtype::f32, Dtype::bf16}}};
constexpr AttributeRule kReduceAttributes[] = {
    text_rule("reduction", is_reduction),
    dimension_rule("first", true),
    integer_rule("count", 1, 64, true),
    flag_rule("channels_last"),
};

constexpr StepSchema kMoveSchemas[] = {
    {"concat", kConcatOperands, kDenseResults, kConcatAttributes},
    {"copy", kCopyOperands, kDenseResults, {}},
    {"cumulate", kCumulateOperands, kCumulateResults, kCumulateAttributes},
    {"gather_rows", kGatherRowsOperands, kGatherRowsResults, kGatherRowsAttributes},
    {"pad", kDenseOperands, kDenseResults, kPadAttributes},
    {"reduce", kReduceOperands, kReduceResults, kReduceAttributes},
    {"view", kViewOperands, kViewResults, kViewAttributes},
};

void view_permuted(const StepBinder& binder, const PlacedValue& x, PlacedValue& y) {
  const std::vector<int64_t> dims = binder.attributes().integers("dims");
  binder.require(dims.size() == x.sizes.size(), "permute names ", dims.size(), " dimensions of ", x.sizes.size());
  std::vector<bool> taken(dims.size(), false);
  Sizes sizes;
  for (const int64_t dim : dims) {
    binder.require(dim >= 0 && static_cast<size_t>(dim) < dims.size() && !taken[static_cast<size_t>(dim)],
                   "permute names dimension ", dim);
    taken[static_cast<size_t>(dim)] = true;
    sizes.push_back(x.sizes[static_cast<size_t>(dim)]);
    y.strides.push_back(x.strides[static_cast<size_t>(dim)]);
  }
  binder.require_sizes(y, sizes);
}

void view_split(const StepBinder& binder, const PlacedValue& x, PlacedValue& y) {
  binder.require(!x.sizes.empty() && y.sizes.size() >= x.sizes.size(), format_sizes(x.sizes), " is not split to ",
                 format_sizes(y.sizes));
  const size_t kept = x.sizes.size() - 1;
  const Sizes tail(y.sizes.begin() + static_cast<std::ptrdiff_t>(kept), y.sizes.end());
  binder.require(
      std::equal(x.sizes.begin(), x.sizes.end() - 1, y.sizes.begin()) && count_elements(tail) == x.sizes.back(),
      format_sizes(x.sizes), " is not split to ", format_sizes(y.sizes));
  y.strides.assign(x.strides.begin(), x.strides.end() - 1);
  for (const int64_t stride : contiguous_strides(tail)) {
    binder.require_product({stride, x.strides.back()});
    y.strides.push_back(stride * x.strides.back());
  }
}

void view_merged(const StepBinder& binder, const PlacedValue& x, PlacedValue& y) {
  const size_t rank = x.sizes.size();
  binder.require(rank >= 2, "there are no two dimensions to merge");
  Sizes sizes(x.sizes.begin(), x.sizes.end() - 1);
  sizes.back() = x.sizes[rank - 2] * x.sizes[rank - 1];
  binder.require_sizes(y, sizes);
  y.strides.assign(x.strides.begin(), x.strides.end() - 1);
  if (x.sizes[rank - 1] != 1) y.strides.back() = x.strides[rank - 1];
  binder.require(x.sizes[rank - 2] <= 1 || x.sizes[rank - 1] == 1 ||
                     x.strides[rank - 2] == x.strides[rank - 1] * x.sizes[rank - 1],
                 "the last two dimensions do not lie one behind the other");
}

void view_expanded(const StepBinder& binder, const PlacedValue& x, PlacedValue& y) {
  binder.require(y.sizes.size() >= x.sizes.size(), "expand takes dimensions away");
  const size_t added = y.sizes.size() - x.sizes.size();
  for (size_t i = 0; i < y.sizes.size(); ++i) {
    const bool is_new = i < added;
    const int64_t size = is_new ? 1 : x.sizes[i - added];
    binder.require(size == 1 || size == y.sizes[i], "expand turns ", size, " into ", y.sizes[i]);
    y.strides.push_back(is_new || size != y.sizes[i] ? 0 : x.strides[i - added]);
  }
}

void view_sliced(const StepBinder& binder, const PlacedValue& x, PlacedValue& y, bool select) {
  const int64_t dim = binder.attributes().integer("dim");
  binder.require(static_cast<size_t>(dim) < x.sizes.size(), "there is no dimension ", dim);
  const auto at = static_cast<size_t>(dim);
  int64_t start = binder.attributes().integer(select ? "index" : "start");
  const int64_t step = binder.attributes().integer("step", 1), measured = binder.attributes().integer("measured", -1);
  binder.require((measured >= 0) == binder.has_operand(1), "a size is measured of operand 1 and nothing else");
  if (measured >= 0) {
    const Sizes& sizes = binder.operand(1).sizes;
    binder.require(start == 0 && static_cast<size_t>(measured) < sizes.size(), "there is no dimension ", measured);
    start = sizes[static_cast<size_t>(measured)];
  }
  // From the end; a slice that begins before the first begins there.
  if (start < 0) start += x.sizes[at];
  if (start < 0 && !select) start = 0;
  Sizes sizes = x.sizes;
  y.strides = x.strides;
  int64_t count = 1;
  if (select) {
    sizes.erase(sizes.begin() + dim);
    y.strides.erase(y.strides.begin() + dim);
  } else {
    binder.require(y.sizes.size() == x.sizes.size(), "the slice does not fit");
    count = sizes[at] = y.sizes[at];
  }
  binder.require_sizes(y, sizes);
  binder.require(start >= 0 && (count == 0 || (start < x.sizes[at] && (count - 1) <= (x.sizes[at] - 1 - start) / step)),
                 "the part lies outside of ", x.sizes[at]);
  if (count > 1) y.strides[at] *= step;
  // Strides of an empty value lead nowhere.
  if (y.elements() > 0) y.offset += start * x.strides[at] * item_size(x.dtype);
}

}  // namespace

std::span<const StepSchema> move_schemas() { return kMoveSchemas; }

void bind_view(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  PlacedValue& y = binder.result();
  binder.require(x.dtype == y.dtype, "a view changes the dtype");
  y.strides.clear();
  const std::string form = binder.attributes().text("form", "");
  if (form == "reshape") {
    binder.require_row_major(x);
    binder.require(x.elements() == y.elements(), format_sizes(x.sizes), " does not reshape to ", format_sizes(y.sizes));
    y.strides = contiguous_strides(y.sizes);
  } else if (form == "split") {
    view_split(binder, x, y);
  } else if (form == "merge") {
    view_merged(binder, x, y);
  } else if (form == "permute") {
    view_permuted(binder, x, y);
  } else if (form == "expand") {
    view_expanded(binder, x, y);
  } else {
    view_sliced(binder, x, y, form == "select");
  }
}

void bind_copy(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  binder.require(x.dtype == y.dtype, "a copy changes the dtype");
  binder.require_sizes(y, x.sizes);
  binder.require(x.sizes.size() <= kMoveRank, "more than ", kMoveRank, " dimensions");
  CopyCall call;
  call.item = static_cast<int>(item_size(x.dtype));
  binder.require(call.item <= 8, "items of ", call.item, " bytes");
  // The result's own order: its widest stride first, so that it is written line by line; at least a plane.
  std::vector<size_t> order(x.sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return y.strides[a] > y.strides[b]; });
  call.rank = 0;
  for (size_t i = order.size(); i < 2; ++i) call.sizes[call.rank++] = 1;
  for (const size_t i : order) {
    call.sizes[call.rank] = x.sizes[i];
    call.x_strides[call.rank] = x.strides[i];
    call.y_strides[call.rank] = y.strides[i];
    ++call.rank;
  }
  binder.set_call("copy", call);
  binder.point(&CopyCall::x, x);
  binder.point(&CopyCall::y, y);
  binder.set_work(0, 2.0 * static_cast<double>(x.elements() * call.item));
}

void bind_concat(StepBinder& binder) {
  const PlacedValue& y = binder.result();
  const size_t pieces = binder.step().operands.size();
  binder.require(pieces <= kConcatPieces, pieces, " pieces");
  const int64_t dim = binder.attributes().integer("dim");
  binder.require(static_cast<size_t>(dim) < y.sizes.size(), "there is no dimension ", dim);
  const auto axis = static_cast<size_t>(dim);
  const Format format = y.is_row_major() ? Format::row_major : Format::channels_last;
  // A piece is one run of memory for each setting of the dimensions that lie outside of the axis.
  ConcatCall call;
  call.pieces = static_cast<int>(pieces);
  for (size_t i = 0; i < y.sizes.size(); ++i) {
    const bool outside = format == Format::row_major ? i < axis : i != 1 && (i < axis || axis == 1);
    if (i != axis && outside) call.outer *= y.sizes[i];
  }
  Sizes sizes = y.sizes;
  sizes[axis] = 0;
  for (size_t i = 0; i < pieces; ++i) {
    const PlacedValue& x = binder.operand(i);
    binder.require_dtype(x, y.dtype);
    binder.require(x.sizes.size() == y.sizes.size(), "a piece is ", format_sizes(x.sizes));
    Sizes wanted = y.sizes;
    wanted[axis] = x.sizes[axis];
    binder.require_sizes(x, wanted);
    binder.require(x.is_dense(format), "a piece lies in another order than the result");
    sizes[axis] += x.sizes[axis];
    call.widths[i] = call.outer > 0 ? x.elements() / call.outer * item_size(x.dtype) : 0;
  }
  binder.require_sizes(y, sizes);
  binder.set_call("concat", call);
  for (size_t i = 0; i < pieces; ++i) binder.point_at(&ConcatCall::x, i, binder.operand(i));
  binder.point(&ConcatCall::y, y);
  binder.set_work(0, 2.0 * static_cast<double>(y.elements() * item_size(y.dtype)));
}

namespace {

template <typename T>
uint64_t to_bits(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

// Attribute "value" as an item of this dtype.
uint64_t read_bits(const StepBinder& binder, Dtype dtype) {
  const double value = binder.attributes().number("value", 0);
  if (value == 0) return 0;
  if (dtype == Dtype::f32) return to_bits(static_cast<float>(value));
  binder.require(is_integer_dtype(dtype) && std::abs(value) <= 1 << 24, "items of ", dtype_name(dtype),
                 " are not filled with ", value);
  if (dtype == Dtype::boolean) return 1;
  return static_cast<uint64_t>(static_cast<int64_t>(value));  // shorter ones are its first bytes
}

}  // namespace

void bind_pad(StepBinder& binder) {
  const PlacedValue &x = binder.operand(0), &y = binder.result();
  const size_t rank = x.sizes.size();
  binder.require(x.dtype == y.dtype, "padding changes the dtype");
  binder.require(rank > 0 && rank <= kMoveRank && y.sizes.size() == rank, rank, " dimensions");
  const Format format = y.is_row_major() ? Format::row_major : Format::channels_last;
  binder.require(x.is_dense(format), "x and the result lie in different orders");
  const std::vector<int64_t> before = binder.attributes().integers("before"),
                             after = binder.attributes().integers("after");
  binder.require(before.size() == rank && after.size() == rank, "there must be ", rank, " paddings");
  PadCall call;
  call.item = static_cast<int>(item_size(x.dtype));
  binder.require(call.item <= 8, "items of ", call.item, " bytes");
  call.value = read_bits(binder, x.dtype);
  call.rank = static_cast<int>(rank);
  for (size_t i = 0; i < rank; ++i) {
    binder.require(y.sizes[i] == x.sizes[i] + before[i] + after[i], "dimension ", i, " is ", x.sizes[i], " and ",
                   y.sizes[i]);
    binder.require(before[i] >= -x.sizes[i] && after[i] >= -x.sizes[i], "more is cut than dimension ", i, " has");
    // The order of memory.
    const size_t at = format == Format::row_major || i == 0 ? i : i == 1 ? rank - 1 : i - 1;
    call.x_sizes[at] = x.sizes[i], call.y_sizes[at] = y.sizes[i], call.before[at] = before[i];
  }
  binder.set_call("pad", call);
  binder.point(&PadCall::x, x);
  binder.point(&PadCall::y, y);
  binder.set_work(0, 2.0 * static_cast<double>(y.elements() * call.item));
}

void bind_cumulate(StepBinder& binder) {
  const PlacedValue &x = binder.operand(0), &y = binder.result();
  binder.require_dtype(y, x.dtype);
  binder.require_sizes(y, x.sizes);
  const int64_t dim = binder.attributes().integer("dim");
  binder.require(static_cast<size_t>(dim) < x.sizes.size(), "there is no dimension ", dim);
  CumulateCall call;
  call.integers = x.dtype == Dtype::i64;
  for (int64_t i = 0; i < static_cast<int64_t>(x.sizes.size()); ++i) {
    int64_t& side = i < dim ? call.outer : i == dim ? call.count : call.inner;
    side *= x.sizes[static_cast<size_t>(i)];
  }
  binder.set_call("cumulate", call);
  binder.point(&CumulateCall::x, x);
  binder.point(&CumulateCall::y, y);
  binder.set_work(0, 8.0 * static_cast<double>(x.elements()));
}

namespace {

// The table of rows, or the size of one that a linear packed (attributes "rows" and "columns").
Sizes read_table(const StepBinder& binder, const PlacedValue& table, GatherRowsCall& call) {
  const int64_t rows = binder.attributes().integer("rows", 0), columns = binder.attributes().integer("columns", 0);
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

}  // namespace

void bind_gather_rows(StepBinder& binder) {
  const PlacedValue &table = binder.operand(0), &indices = binder.operand(1), &y = binder.result();
  GatherRowsCall call;
  const Sizes table_sizes = read_table(binder, table, call);
  binder.require(table.dtype == y.dtype, "a gather changes the dtype");
  Sizes sizes = indices.sizes;
  sizes.push_back(table_sizes[1]);
  binder.require_sizes(y, sizes);
  call.rows = table_sizes[0], call.row_bytes = table_sizes[1] * item_size(table.dtype), call.count = indices.elements();
  call.narrow_indices = indices.dtype == Dtype::i32;
  call.negative_allowed = binder.attributes().integer("negative_allowed", 0) != 0;
  call.fault_code = binder.fault_code();
  binder.set_call("gather_rows", call);
  binder.point(&GatherRowsCall::table, table);
  binder.point(&GatherRowsCall::indices, indices);
  binder.point(&GatherRowsCall::y, y);
  binder.point_fault(&GatherRowsCall::fault);
  binder.set_work(0, 2.0 * static_cast<double>(call.count * call.row_bytes));
  // Of the table only the chosen rows are touched.
  binder.subtract_bytes(table.elements() * item_size(table.dtype) - call.count * call.row_bytes);
}

namespace {

template <typename Call>
void bind_reduce_of(StepBinder& binder, std::string_view kernel, Dtype dtype) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  binder.require_dtype(y, dtype);
  const int64_t first = binder.attributes().integer("first"), count = binder.attributes().integer("count");
  const bool last_format = binder.attributes().integer("channels_last", 0) != 0;
  binder.require(static_cast<size_t>(first) <= x.sizes.size() &&
                     static_cast<size_t>(count) <= x.sizes.size() - static_cast<size_t>(first),
                 count, " dimensions from ", first, " on");
  // The order of memory: for channels-last values the channels come last.
  Sizes sizes = x.sizes;
  int64_t from = first;
  if (last_format) {
    binder.require(
        x.is_dense(Format::channels_last) && first == 2 && static_cast<size_t>(first + count) == x.sizes.size(),
        "only all of height and width of channels-last values");
    sizes.push_back(sizes[1]);
    sizes.erase(sizes.begin() + 1);
    from = 1;
  } else {
    binder.require_row_major(x);
  }
  Call call;
  for (int64_t i = 0; i < static_cast<int64_t>(sizes.size()); ++i) {
    int64_t& side = i < from ? call.outer : i < from + count ? call.count : call.inner;
    side *= sizes[static_cast<size_t>(i)];
  }
  binder.require(y.elements() == call.outer * call.inner, "the result has ", y.elements(), " elements");
  const auto found =
      std::find(std::begin(kReductions), std::end(kReductions), binder.attributes().text("reduction", "sum"));
  call.reduction = static_cast<Reduction>(found - std::begin(kReductions));
  binder.set_call(kernel, call);
  binder.point(&Call::x, x);
  binder.point(&Call::y, y);
  binder.set_work(0, static_cast<double>((x.elements() + y.elements()) * item_size(dtype)));
}

}  // namespace

void bind_reduce(StepBinder& binder) {
  if (binder.operand(0).dtype == Dtype::bf16) return bind_reduce_of<ReduceBf16Call>(binder, "reduce_bf16", Dtype::bf16);
  bind_reduce_of<ReduceCall>(binder, "reduce", Dtype::f32);
}

}  // namespace lissome

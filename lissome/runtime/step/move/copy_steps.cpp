#include "lissome/runtime/step/move/copy_steps.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "lissome/kernel.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

// Adds a dimension behind those that are there, as one with the last where both sides go on from it without a gap.
void add_dimension(CopyCall& call, int64_t size, int64_t x_stride, int64_t y_stride) {
  if (size == 1) return;
  int last = call.rank - 1;
  if (last >= 0 && call.x_strides[last] == size * x_stride && call.y_strides[last] == size * y_stride) {
    size *= call.sizes[last];
  } else {
    last = call.rank++;
  }
  call.sizes[last] = size, call.x_strides[last] = x_stride, call.y_strides[last] = y_stride;
}

// At least a plane.
void add_outer_dimensions(CopyCall& call) {
  for (; call.rank < 2; ++call.rank) {
    for (int64_t* numbers : {call.sizes, call.x_strides, call.y_strides})
      std::copy_backward(numbers, numbers + call.rank, numbers + call.rank + 1);
    call.sizes[0] = 1, call.x_strides[0] = call.y_strides[0] = 0;
  }
}

void bind_copy(StepBinder& binder, const CopyStep& step) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  binder.require(x.dtype == y.dtype, "a copy changes the dtype");
  binder.require_sizes(y, x.sizes);
  binder.require(x.sizes.size() <= kMoveRank, "more than ", kMoveRank, " dimensions");
  CopyCall call;
  call.item = static_cast<int>(item_size(x.dtype));
  binder.require(call.item <= 8, "items of ", call.item, " bytes");
  // The result's own order: its widest stride first, so that it is written line by line.
  std::vector<size_t> order(x.sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return y.strides[a] > y.strides[b]; });
  call.rank = 0;
  for (const size_t i : order) add_dimension(call, x.sizes[i], x.strides[i], y.strides[i]);
  add_outer_dimensions(call);
  binder.set_call("copy", call);
  binder.point(&CopyCall::x, step.x);
  binder.point(&CopyCall::y, step.y);
  binder.set_work(0, 2.0 * static_cast<double>(x.elements() * call.item));
}

// A piece is one run of memory for each setting of the dimensions that lie outside of the axis.
bool lies_outside(size_t dim, size_t axis, Format format) {
  return format == Format::row_major ? dim < axis : dim != 1 && (dim < axis || axis == 1);
}

int64_t count_runs(const PlacedValue& y, size_t axis, Format format) {
  int64_t runs = 1;
  for (size_t i = 0; i < y.sizes.size(); ++i)
    if (lies_outside(i, axis, format)) runs *= y.sizes[i];
  return runs;
}

// Elements from one run of x to the next; nothing where they are no runs, or not equally far apart.
std::optional<int64_t> find_pitch(const PlacedValue& x, size_t axis, Format format) {
  if (x.elements() == 0) return 0;
  const Sizes dense = dense_strides(x.sizes, format);
  std::optional<int64_t> pitch;
  int64_t run = 1;
  for (size_t i = 0; i < x.sizes.size(); ++i) {
    if (lies_outside(i, axis, format)) continue;
    if (x.sizes[i] != 1 && x.strides[i] != dense[i]) return std::nullopt;
    run *= x.sizes[i];
  }
  for (size_t i = 0; i < x.sizes.size(); ++i) {
    if (!lies_outside(i, axis, format) || x.sizes[i] == 1) continue;
    // A dense stride counts runs, each of which may lie further from the next than it is long.
    const int64_t runs = dense[i] / run;
    if (x.strides[i] % runs != 0 || (pitch && *pitch != x.strides[i] / runs)) return std::nullopt;
    pitch = x.strides[i] / runs;
  }
  return pitch.value_or(run);
}

void bind_concat(StepBinder& binder, const ConcatStep& step) {
  const PlacedValue& y = binder.value(step.y);
  const std::vector<Operand> pieces = step.pieces();
  binder.require(pieces.size() <= kConcatPieces, pieces.size(), " pieces");
  binder.require(static_cast<size_t>(step.dim) < y.sizes.size(), "there is no dimension ", step.dim);
  const auto axis = static_cast<size_t>(step.dim);
  const Format format = y.is_row_major() ? Format::row_major : Format::channels_last;
  ConcatCall call;
  call.pieces = static_cast<int>(pieces.size());
  call.outer = count_runs(y, axis, format);
  Sizes sizes = y.sizes;
  sizes[axis] = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const PlacedValue& x = binder.value(pieces[i]);
    binder.require_dtype(x, y.dtype);
    binder.require(x.sizes.size() == y.sizes.size(), "a piece is ", format_sizes(x.sizes));
    Sizes wanted = y.sizes;
    wanted[axis] = x.sizes[axis];
    binder.require_sizes(x, wanted);
    const std::optional<int64_t> pitch = find_pitch(x, axis, format);
    binder.require(pitch.has_value(), "a piece lies in another order than the result");
    sizes[axis] += x.sizes[axis];
    call.widths[i] = call.outer > 0 ? x.elements() / call.outer * item_size(x.dtype) : 0;
    call.pitches[i] = *pitch * item_size(x.dtype);
  }
  binder.require_sizes(y, sizes);
  binder.set_call("concat", call);
  for (size_t i = 0; i < pieces.size(); ++i) binder.point_at(&ConcatCall::x, i, binder.value(pieces[i]));
  binder.point(&ConcatCall::y, step.y);
  binder.set_work(0, 2.0 * static_cast<double>(y.elements() * item_size(y.dtype)));
}

template <typename T>
uint64_t to_bits(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

// `value` as an item of this dtype.
uint64_t read_bits(const StepBinder& binder, double value, Dtype dtype) {
  if (value == 0) return 0;
  if (dtype == Dtype::f32) return to_bits(static_cast<float>(value));
  binder.require(is_integer_dtype(dtype) && std::abs(value) <= 1 << 24, "items of ", dtype_name(dtype),
                 " are not filled with ", value);
  if (dtype == Dtype::boolean) return 1;
  return static_cast<uint64_t>(static_cast<int64_t>(value));  // shorter ones are its first bytes
}

// In the order of PadFill.
constexpr std::string_view kPadFills[] = {"constant", "circular", "reflect", "replicate"};

// Inner dimensions that stay as they are belong to the items of the next one, so that longer runs are copied.
void merge_inner(PadCall& call) {
  if (call.fill != PadFill::constant && call.fill != PadFill::circular) return;
  while (call.rank > 1) {
    const int last = call.rank - 1;
    if (call.before[last] != 0 || call.x_sizes[last] != call.y_sizes[last]) return;
    const int64_t inner = call.x_sizes[last];
    call.x_sizes[last - 1] *= inner, call.y_sizes[last - 1] *= inner, call.before[last - 1] *= inner;
    --call.rank;
  }
}

void bind_pad(StepBinder& binder, const PadStep& step) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  const size_t rank = x.sizes.size();
  binder.require(x.dtype == y.dtype, "padding changes the dtype");
  binder.require(rank > 0 && rank <= kMoveRank && y.sizes.size() == rank, rank, " dimensions");
  const Format format = y.is_row_major() ? Format::row_major : Format::channels_last;
  binder.require(x.is_dense(format), "x and the result lie in different orders");
  const std::vector<int64_t>&before = step.before, &after = step.after;
  binder.require(before.size() == rank && (step.roll || after.size() == rank), "there must be ", rank, " paddings");
  PadCall call;
  call.item = static_cast<int>(item_size(x.dtype));
  binder.require(call.item <= 8, "items of ", call.item, " bytes");
  call.fill = static_cast<PadFill>(std::ranges::find(kPadFills, step.fill) - std::begin(kPadFills));
  if (step.roll) call.fill = PadFill::circular;
  call.value = read_bits(binder, step.value, x.dtype);
  binder.require(call.fill == PadFill::constant || x.elements() > 0 || y.elements() == 0, "x is empty");
  call.rank = static_cast<int>(rank);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t ahead = step.roll ? before[i] % std::max<int64_t>(x.sizes[i], 1) : before[i];
    const int64_t behind = step.roll ? -ahead : after[i];
    binder.require(y.sizes[i] == x.sizes[i] + ahead + behind, "dimension ", i, " is ", x.sizes[i], " and ", y.sizes[i]);
    binder.require(ahead >= -x.sizes[i] && behind >= -x.sizes[i], "more is cut than dimension ", i, " has");
    // The order of memory.
    const size_t at = format == Format::row_major || i == 0 ? i : i == 1 ? rank - 1 : i - 1;
    call.x_sizes[at] = x.sizes[i], call.y_sizes[at] = y.sizes[i], call.before[at] = ahead;
  }
  merge_inner(call);
  binder.set_call("pad", call);
  binder.point(&PadCall::x, step.x);
  binder.point(&PadCall::y, step.y);
  binder.set_work(0, 2.0 * static_cast<double>(y.elements() * call.item));
}

}  // namespace

bool is_pad_fill(std::string_view word) { return std::ranges::find(kPadFills, word) != std::end(kPadFills); }

std::vector<StepRow> list_copy_steps() {
  return {declare_step<CopyStep, bind_copy>(), declare_step<ConcatStep, bind_concat>(),
          declare_step<PadStep, bind_pad>()};
}

}  // namespace lissome

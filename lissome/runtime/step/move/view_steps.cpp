#include "lissome/runtime/step/move/view_steps.h"

#include <algorithm>

#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

void view_permuted(const StepBinder& binder, const std::vector<int64_t>& dims, const PlacedValue& x, PlacedValue& y) {
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

// Where a slice begins, or what is selected.
int64_t find_start(const StepBinder& binder, const ViewStep& step, int64_t size, bool selects) {
  int64_t start = selects ? step.index : step.start;
  binder.require((step.measured_dim >= 0) == bool(step.measured), "a size is measured of operand 1 and nothing else");
  if (step.measured) {
    const Sizes& sizes = binder.value(step.measured).sizes;
    binder.require(start == 0 && static_cast<size_t>(step.measured_dim) < sizes.size(), "there is no dimension ",
                   step.measured_dim);
    start = sizes[static_cast<size_t>(step.measured_dim)];
  }
  // From the end; a slice that begins before the first begins there.
  if (start < 0) start += size;
  return start < 0 && !selects ? 0 : start;
}

void view_sliced(const StepBinder& binder, const ViewStep& step, const PlacedValue& x, PlacedValue& y) {
  const bool selects = step.form == "select";
  binder.require(step.dim >= 0, "attribute ", quote("dim"), " is missing");
  binder.require(static_cast<size_t>(step.dim) < x.sizes.size(), "there is no dimension ", step.dim);
  const auto at = static_cast<size_t>(step.dim);
  const int64_t start = find_start(binder, step, x.sizes[at], selects);
  Sizes sizes = x.sizes;
  y.strides = x.strides;
  int64_t count = 1;
  if (selects) {
    sizes.erase(sizes.begin() + step.dim);
    y.strides.erase(y.strides.begin() + step.dim);
  } else {
    binder.require(y.sizes.size() == x.sizes.size(), "the slice does not fit");
    count = sizes[at] = y.sizes[at];
  }
  binder.require_sizes(y, sizes);
  binder.require(
      start >= 0 && (count == 0 || (start < x.sizes[at] && (count - 1) <= (x.sizes[at] - 1 - start) / step.step)),
      "the part lies outside of ", x.sizes[at]);
  if (count > 1) y.strides[at] *= step.step;
  // Strides of an empty value lead nowhere.
  if (y.elements() > 0) y.offset += start * x.strides[at] * item_size(x.dtype);
}

void bind_view(StepBinder& binder, const ViewStep& step) {
  const PlacedValue& x = binder.value(step.x);
  PlacedValue& y = binder.placed(step.y);
  binder.require(x.dtype == y.dtype, "a view changes the dtype");
  y.block = x.block;
  y.offset = x.offset;
  y.strides.clear();
  if (step.form == "reshape") {
    binder.require_row_major(x);
    binder.require(x.elements() == y.elements(), format_sizes(x.sizes), " does not reshape to ", format_sizes(y.sizes));
    y.strides = contiguous_strides(y.sizes);
  } else if (step.form == "split") {
    view_split(binder, x, y);
  } else if (step.form == "merge") {
    view_merged(binder, x, y);
  } else if (step.form == "permute") {
    view_permuted(binder, step.dims, x, y);
  } else if (step.form == "expand") {
    view_expanded(binder, x, y);
  } else {
    view_sliced(binder, step, x, y);
  }
}

}  // namespace

bool is_view_form(std::string_view word) {
  constexpr std::string_view kForms[] = {"reshape", "split", "merge", "permute", "expand", "slice", "select"};
  return std::find(std::begin(kForms), std::end(kForms), word) != std::end(kForms);
}

PlanValueId find_viewed(const PlanStep& view) { return read_step<ViewStep>(view).x.value; }

std::vector<StepRow> list_view_steps() { return {declare_step<ViewStep, bind_view>()}; }

}  // namespace lissome

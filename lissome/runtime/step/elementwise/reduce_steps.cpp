#include "lissome/runtime/step/elementwise/reduce_steps.h"

#include <algorithm>

#include "lissome/kernel.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

// In the order of Reduction.
constexpr std::string_view kReductions[] = {"sum", "mean", "norm", "maximum", "minimum"};

template <typename Call>
void bind_reduce_of(StepBinder& binder, const ReduceStep& step, std::string_view kernel, Dtype dtype) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  binder.require_dtype(y, dtype);
  const int64_t first = step.first, count = step.count;
  binder.require(static_cast<size_t>(first) <= x.sizes.size() &&
                     static_cast<size_t>(count) <= x.sizes.size() - static_cast<size_t>(first),
                 count, " dimensions from ", first, " on");
  // The order of memory: for channels-last values the channels come last.
  Sizes sizes = x.sizes;
  int64_t from = first;
  if (step.channels_last) {
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
  const auto found = std::find(std::begin(kReductions), std::end(kReductions), step.reduction);
  call.reduction = static_cast<Reduction>(found - std::begin(kReductions));
  binder.set_call(kernel, call);
  binder.point(&Call::x, step.x);
  binder.point(&Call::y, step.y);
  binder.set_work(0, static_cast<double>((x.elements() + y.elements()) * item_size(dtype)));
}

void bind_reduce(StepBinder& binder, const ReduceStep& step) {
  if (binder.value(step.x).dtype == Dtype::bf16)
    return bind_reduce_of<ReduceBf16Call>(binder, step, "reduce_bf16", Dtype::bf16);
  bind_reduce_of<ReduceCall>(binder, step, "reduce", Dtype::f32);
}

void bind_find_largest(StepBinder& binder, const FindLargestStep& step) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& positions = binder.value(step.positions);
  binder.require(step.dim < static_cast<int64_t>(x.sizes.size()), "there is no dimension ", step.dim);
  const auto axis = static_cast<size_t>(step.dim);
  ReduceCall call;
  for (size_t i = 0; i < axis; ++i) call.outer *= x.sizes[i];
  for (size_t i = axis + 1; i < x.sizes.size(); ++i) call.inner *= x.sizes[i];
  call.count = x.sizes[axis];
  binder.require(positions.elements() == call.outer * call.inner, "the result has ", positions.elements(), " elements");
  binder.require(call.count > 0 || positions.elements() == 0, "there is nothing to choose from");
  binder.set_call("find_largest", call);
  binder.point(&ReduceCall::x, step.x);
  binder.point(&ReduceCall::positions, step.positions);
  binder.set_work(8.0 * static_cast<double>(x.elements()), 4.0 * static_cast<double>(x.elements()));
}

void bind_cumulate(StepBinder& binder, const CumulateStep& step) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  binder.require_dtype(y, x.dtype);
  binder.require_sizes(y, x.sizes);
  binder.require(static_cast<size_t>(step.dim) < x.sizes.size(), "there is no dimension ", step.dim);
  CumulateCall call;
  call.integers = x.dtype == Dtype::i64;
  for (int64_t i = 0; i < static_cast<int64_t>(x.sizes.size()); ++i) {
    int64_t& side = i < step.dim ? call.outer : i == step.dim ? call.count : call.inner;
    side *= x.sizes[static_cast<size_t>(i)];
  }
  binder.set_call("cumulate", call);
  binder.point(&CumulateCall::x, step.x);
  binder.point(&CumulateCall::y, step.y);
  binder.set_work(0, 8.0 * static_cast<double>(x.elements()));
}

}  // namespace

bool is_reduction(std::string_view word) {
  return std::find(std::begin(kReductions), std::end(kReductions), word) != std::end(kReductions);
}

std::vector<StepRow> list_reduce_steps() {
  return {declare_step<ReduceStep, bind_reduce>(), declare_step<FindLargestStep, bind_find_largest>(),
          declare_step<CumulateStep, bind_cumulate>()};
}

}  // namespace lissome

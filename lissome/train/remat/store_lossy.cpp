// See store_lossy.h.
#include "lissome/train/remat/store_lossy.h"

#include "lissome/runtime/step/elementwise/elementwise_steps.h"

namespace lissome {
namespace {

PlanStep make_cast(PlanValueId from, PlanValueId to) { return write_step(make_cast_step(from, to)); }

constexpr SpillKind kThroughBf16 = {
    .least_bytes = 64 << 10,
    .allows = [](const PlanValue& value) { return value.dtype == Dtype::f32; },
    .store =
        [](PlanValue value) {
          value.dtype = Dtype::bf16;
          return value;
        },
    .count_saved = [](int64_t bytes) { return bytes / 2; },
    .make_store = make_cast,
    .make_restore = make_cast,
};

}  // namespace

Spills store_in_bf16(Plan& plan, std::span<const Sizes> inputs, int threads, int64_t wanted) {
  return spill_values(plan, inputs, threads, wanted, kThroughBf16);
}

}  // namespace lissome

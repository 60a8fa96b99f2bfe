// See store_in_file.h.
#include "lissome/train/remat/store_in_file.h"

#include "lissome/runtime/step/move/offload_steps.h"

namespace lissome {
namespace {

// The ticket that a step "offload" gives.
PlanValue make_ticket(PlanValue value) {
  value.dtype = Dtype::i64;
  value.sizes.clear();
  value.format = Format::row_major;
  return value;
}

constexpr SpillKind kThroughFile = {
    .least_bytes = 1 << 20,
    .allows = [](const PlanValue&) { return true; },
    .store = make_ticket,
    .count_saved = [](int64_t bytes) { return bytes; },
    .make_store = [](PlanValueId from, PlanValueId to) { return write_step(OffloadStep{.x = {from}, .ticket = {to}}); },
    .make_restore = [](PlanValueId from,
                       PlanValueId to) { return write_step(ReloadStep{.ticket = {from}, .x = {to}}); },
};

}  // namespace

Spills store_in_file(Plan& plan, std::span<const Sizes> inputs, int threads, int64_t wanted) {
  return spill_values(plan, inputs, threads, wanted, kThroughFile);
}

}  // namespace lissome

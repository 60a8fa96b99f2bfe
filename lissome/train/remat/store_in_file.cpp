// See store_in_file.h.
#include "lissome/train/remat/store_in_file.h"

namespace lissome {
namespace {

PlanStep make_transfer(std::string_view kernel) {
  PlanStep step;
  step.kernel = kernel;
  return step;
}

// The ticket that steps "offload" give.
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
    .make_store = [] { return make_transfer(kOffloadStep); },
    .make_restore = [] { return make_transfer(kReloadStep); },
};

}  // namespace

Spills store_in_file(Plan& plan, std::span<const Sizes> inputs, int threads, int64_t wanted) {
  return send_on_spill(plan, inputs, threads, wanted, kThroughFile);
}

}  // namespace lissome

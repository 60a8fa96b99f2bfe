// offload: operand 0 goes to a place of its own in the session's file (SessionOptions::offload_folder), which the
// result, one i64, stands for: a ticket that holds 0 and keeps the order of steps. reload: operand 0 is a
// ticket, the result what was sent, in memory again.
#include "lissome/runtime/step/step_rows.h"
#include "lissome/runtime/step/step_schema.h"

namespace lissome {
namespace {

constexpr ValueRule kMovedValue[] = {{"x", DtypeSet::all(), ValueLayout::dense}};
constexpr ValueRule kTicket[] = {{"ticket", {Dtype::i64}}};

constexpr StepSchema kOffloadSchemas[] = {
    {kOffloadStep, kMovedValue, kTicket, {}},
    {kReloadStep, kTicket, kMovedValue, {}},
};

}  // namespace

std::span<const StepSchema> offload_schemas() { return kOffloadSchemas; }

void bind_offload(StepBinder& binder) {
  binder.require_sizes(binder.result(), {});
  binder.send_to_file(binder.step().operands[0], binder.step().results[0]);
}

void bind_reload(StepBinder& binder) { binder.fetch_from_file(binder.step().operands[0], binder.step().results[0]); }

}  // namespace lissome

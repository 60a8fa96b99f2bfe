// offload: operand 0 goes to a place of its own in the session's file (SessionOptions::offload_folder), which the
// result, one i64, stands for: a ticket that is never written, but keeps the order of steps. reload: operand 0 is a
// ticket, the result what was sent, in memory again.
#include "lissome/runtime/step_rows.h"

namespace lissome {

void bind_offload(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  binder.require(x.is_dense(Format::row_major) || x.is_dense(Format::channels_last), "a value of ",
                 format_sizes(x.sizes), " is not dense");
  binder.require_dense(binder.result(), Dtype::i64, {});
  binder.send_to_file(binder.step().operands[0], binder.step().results[0]);
}

void bind_reload(StepBinder& binder) {
  binder.operand(0);
  binder.result();
  binder.fetch_from_file(binder.step().operands[0], binder.step().results[0]);
}

}  // namespace lissome

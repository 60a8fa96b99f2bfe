// Steps without a kernel: the session moves a value to its file (SessionOptions::offload_folder), and back.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// x goes to a place of its own in the file, which the ticket, one i64, stands for: it holds 0 and keeps the order of
// steps.
struct OffloadStep {
  static constexpr std::string_view kKernel = "offload";
  static constexpr bool kIsTransfer = true;
  Operand x;
  Result ticket;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, DtypeSet::all(), ValueLayout::dense);
    fields.leaves_open(step.x, {0, 1});
    fields.result("ticket", step.ticket, {Dtype::i64});
  }
};

// The x that was sent for a ticket, in memory again.
struct ReloadStep {
  static constexpr std::string_view kKernel = "reload";
  static constexpr bool kIsTransfer = true;
  Operand ticket;
  Result x;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("ticket", step.ticket, {Dtype::i64});
    fields.result("x", step.x, DtypeSet::all(), ValueLayout::dense);
  }
};

}  // namespace lissome

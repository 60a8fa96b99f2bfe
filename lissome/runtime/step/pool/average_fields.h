// The divisor of an average over windows, which pool and average_pool_u8 share.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

struct AverageFields {
  bool counts_padding = true;  // in the number of elements of a window
  int64_t divisor = 0;         // in place of that number; 0: none

  template <typename Self, typename Fields>
  static void describe(Self& self, Fields& fields) {
    fields.flag("counts_padding", self.counts_padding);
    fields.integer("divisor", self.divisor, INT64_MIN, INT64_MAX);
  }
  // `call` has its window.
  void fill(PoolCall& call) const {
    call.counts_padding = counts_padding;
    call.divisor = divisor;
    call.pad_bottom = call.window.pad_height, call.pad_right = call.window.pad_width;
  }
};

}  // namespace lissome

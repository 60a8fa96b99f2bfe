// The portable form.
#include "lissome/kernel/elementwise/lut_u8.h"

#include "lissome/kernel/elementwise/kernel_versions.h"
#include "lissome/kernel/gemm/split.h"

namespace lissome {

void lut_u8_portable(const LutU8Call& call, int part, int parts) {
  const Range range = split_evenly(call.count, part, parts);
  for (int64_t i = range.begin; i < range.end; ++i) call.y[i] = call.table[call.x[i]];
}

}  // namespace lissome

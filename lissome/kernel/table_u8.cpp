// The portable form.
#include "lissome/kernel/table_u8.h"

#include "lissome/kernel/kernel_table_rows.h"
#include "lissome/kernel/split.h"

namespace lissome {

void table_u8_portable(const TableU8Call& call, int part, int parts) {
  const Range range = split_evenly(call.count, part, parts);
  for (int64_t i = range.begin; i < range.end; ++i) call.y[i] = call.table[call.x[i]];
}

}  // namespace lissome

// The portable form, in double.
#include "lissome/kernel/attention/attention_bf16.h"

#include <algorithm>

#include "lissome/kernel/attention/attention_bf16_sizes.h"
#include "lissome/kernel/attention/attention_portable.h"
#include "lissome/kernel/attention/kernel_versions.h"

namespace lissome {

int64_t attention_bf16_scratch(int64_t keys, int64_t size, int64_t value_size) {
  const int64_t widened =
      find_widened_sizes(keys, size, value_size).total() + 4 * attention_scratch(keys, size, value_size);
  return round_to_cache_line(std::max(widened, find_tiled_sizes(keys, size, value_size).total()));
}

void attention_bf16_portable(const AttentionBf16Call& call, int part, int parts) {
  run_attention_portable<uint16_t>(call, part, parts);
}

}  // namespace lissome

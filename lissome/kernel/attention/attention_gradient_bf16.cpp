// The portable form, in double.
#include "lissome/kernel/attention/attention_gradient_bf16.h"

#include <algorithm>

#include "lissome/kernel/attention/attention_gradient.h"
#include "lissome/kernel/attention/attention_gradient_bf16_sizes.h"
#include "lissome/kernel/attention/attention_gradient_portable.h"
#include "lissome/kernel/attention/kernel_versions.h"

namespace lissome {

int64_t attention_gradient_bf16_scratch(int64_t queries, int64_t keys, int64_t size, int64_t value_size) {
  const int64_t widened = find_widened_gradient_sizes(queries, keys, size, value_size).total() +
                          4 * attention_gradient_scratch(keys, size, value_size);
  return round_to_cache_line(std::max(widened, find_tiled_gradient_sizes(queries, keys, size, value_size).total()));
}

void attention_gradient_bf16_portable(const AttentionGradientBf16Call& call, int part, int parts) {
  run_attention_gradient_portable<uint16_t>(call, part, parts);
}

}  // namespace lissome

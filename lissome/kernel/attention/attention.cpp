// The portable form, in double.
#include "lissome/kernel/attention/attention.h"

#include "lissome/kernel/attention/attention_portable.h"
#include "lissome/kernel/attention/attention_sizes.h"
#include "lissome/kernel/attention/kernel_versions.h"

namespace lissome {

int64_t attention_scratch(int64_t keys, int64_t size, int64_t value_size) {
  const AttentionSizes sizes = find_attention_sizes(keys, size, value_size);
  return sizes.key_panels + sizes.value_panels + sizes.scores + sizes.sums;
}

void attention_portable(const AttentionCall& call, int part, int parts) {
  run_attention_portable<float>(call, part, parts);
}

}  // namespace lissome

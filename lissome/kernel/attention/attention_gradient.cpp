// The portable form, in double.
#include "lissome/kernel/attention/attention_gradient.h"

#include "lissome/kernel/attention/attention_gradient_portable.h"
#include "lissome/kernel/attention/attention_gradient_sizes.h"
#include "lissome/kernel/attention/kernel_versions.h"

namespace lissome {

int64_t attention_gradient_scratch(int64_t keys, int64_t size, int64_t value_size) {
  return find_attention_gradient_sizes(keys, size, value_size).total();
}

void attention_gradient_portable(const AttentionGradientCall& call, int part, int parts) {
  run_attention_gradient_portable<float>(call, part, parts);
}

}  // namespace lissome

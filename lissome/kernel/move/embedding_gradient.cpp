// The portable form.
#include "lissome/kernel/move/embedding_gradient.h"

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/move/kernel_versions.h"

namespace lissome {

void embedding_gradient_portable(const EmbeddingGradientCall& call, int part, int parts) {
  const Range mine = split_evenly(call.rows, part, parts);
  for (int64_t i = mine.begin * call.width; i < mine.end * call.width; ++i) call.y[i] = 0;
  for (int64_t i = 0; i < call.count; ++i) {
    const int64_t row = call.indices[i];
    if (row < 0 || row >= call.rows) *call.fault = call.fault_code;
    if (row < mine.begin || row >= mine.end || row == call.padding) continue;
    for (int64_t k = 0; k < call.width; ++k) call.y[row * call.width + k] += call.dy[i * call.width + k];
  }
}

}  // namespace lissome

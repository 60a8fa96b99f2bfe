// The ends of a backward pass over Floats: from the loss to the scores, and into tables of embeddings.
#pragma once

#include "lissome/kernel/isa/vector.h"

#include "lissome/kernel/elementwise/activation_body.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/loss/nll_loss.h"
#include "lissome/kernel/move/embedding_gradient.h"

namespace lissome {
namespace {

LISSOME_INLINE void run_cross_entropy_gradient(const CrossEntropyGradientCall& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  const float factor = call.mean ? *call.dloss / *call.counted : *call.dloss;
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const float* x = call.logarithms + m * call.classes;
    float* dx = call.dx + m * call.classes;
    const int64_t label = call.labels[m];
    const bool ignored = label == call.ignored;
    for (int64_t k = 0; k < call.classes; k += Floats::kWidth) {
      const int64_t left = call.classes - k < Floats::kWidth ? call.classes - k : Floats::kWidth;
      const Floats value = ignored ? zeros() : exponential(load_first(x + k, left)) * fill(factor);
      store_first(dx + k, value, left);
    }
    if (!ignored && label >= 0 && label < call.classes) dx[label] -= factor;
  }
}

LISSOME_INLINE void run_embedding_gradient(const EmbeddingGradientCall& call, int part, int parts) {
  const Range mine = split_evenly(call.rows, part, parts);
  __builtin_memset(call.y + mine.begin * call.width, 0,
                   static_cast<size_t>((mine.end - mine.begin) * call.width) * sizeof(float));
  for (int64_t i = 0; i < call.count; ++i) {
    const int64_t row = call.indices[i];
    if (row < 0 || row >= call.rows) *call.fault = call.fault_code;
    if (row < mine.begin || row >= mine.end || row == call.padding) continue;
    const float* dy = call.dy + i * call.width;
    float* y = call.y + row * call.width;
    for (int64_t k = 0; k < call.width; k += Floats::kWidth) {
      const int64_t left = call.width - k < Floats::kWidth ? call.width - k : Floats::kWidth;
      store_first(y + k, load_first(y + k, left) + load_first(dy + k, left), left);
    }
  }
}

}  // namespace
}  // namespace lissome

// The ends of a backward pass over Floats: from the loss to the scores, and into tables of embeddings.
#pragma once

#include "lissome/kernel/isa/short_row.h"

#include "lissome/kernel/elementwise/activation_body.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/loss/nll_loss.h"
#include "lissome/kernel/move/embedding_gradient.h"

namespace lissome {
namespace {

// scale(x, dx): dx = exp(x) * factor of a row.
template <typename Scale>
LISSOME_INLINE void each_labeled_row(const CrossEntropyGradientCall& call, Range rows, float factor,
                                     const Scale& scale) {
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    float* dx = call.dx + m * call.classes;
    const int64_t label = call.labels[m];
    if (label == call.ignored) {
      __builtin_memset(dx, 0, static_cast<size_t>(call.classes) * sizeof(float));
      continue;
    }
    scale(call.logarithms + m * call.classes, dx);
    if (label >= 0 && label < call.classes) dx[label] -= factor;
  }
}

LISSOME_INLINE void run_cross_entropy_gradient(const CrossEntropyGradientCall& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  const float factor = call.mean ? *call.dloss / *call.counted : *call.dloss;
  const Floats factors = fill(factor);
  const bool is_short = choose_short_row(call.classes, [&](auto row) {
    each_labeled_row(call, rows, factor, [&](const float* x, float* dx) {
      Floats values[row.kVectors];
      row.load_row(x, values);
#pragma GCC unroll 8
      for (Floats& value : values) value = exponential(value) * factors;
      row.store_row(dx, values);
    });
  });
  if (is_short) return;
  each_labeled_row(call, rows, factor, [&](const float* x, float* dx) {
    each_vector(call.classes, [&](int64_t k, auto left) {
      store_first(dx + k, exponential(load_first(x + k, left)) * factors, left);
    });
  });
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
    each_vector(call.width, [&](int64_t k, auto left) {
      store_first(y + k, load_first(y + k, left) + load_first(dy + k, left), left);
    });
  }
}

}  // namespace
}  // namespace lissome

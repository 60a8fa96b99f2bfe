// LSTM and GRU with weights of bf16: states of a step are rounded to bf16, sums stay f32. Rows go one by one against a
// panel, whose weights stay in cache from row to row. With AVX-512 BF16, pairs of products are summed by one
// instruction; else weights are widened, which is exact, and multiplied in f32.
#pragma once

#include "lissome/kernel/isa/vector_bf16.h"
#include "lissome/kernel/recurrent/recurrent_steps_body.h"
#ifdef __AVX512BF16__
#include "lissome/kernel/gemm/linear_bf16_row_body.h"
#else
#include "lissome/kernel/gemm/linear_bf16.h"
#include "lissome/kernel/gemm/linear_bf16_sizes.h"
#endif

namespace lissome {
namespace {

#ifdef __AVX512BF16__
using StateItem = uint16_t;
#else
using StateItem = float;

// Sums of a row and a panel of outputs; even and odd inputs apart, so that additions wait less for each other.
LISSOME_INLINE void multiply_row(const float* x, const uint16_t* weight, int64_t steps, float* results) {
  constexpr int kRegisters = kBf16Panel / Floats::kWidth, kHalf = kRegisters / 2;
  Floats even[kRegisters], odd[kRegisters];
#pragma GCC unroll 4
  for (int i = 0; i < kRegisters; ++i) even[i] = odd[i] = zeros();
  for (int64_t step = 0; step < steps; ++step, weight += kBf16Panel * kBf16Step) {
    for (int64_t k = 0; k < kBf16Step; k += 2, x += 2) {
      const Floats first = fill(x[0]), second = fill(x[1]);
#pragma GCC unroll 4
      for (int i = 0; i < kRegisters; ++i) {
        const Words words = load_words(weight + k * 16 + i / kHalf * 512 + i % kHalf * 2 * Floats::kWidth);
        even[i] = multiply_add(first, even_of(words), even[i]);
        odd[i] = multiply_add(second, odd_of(words), odd[i]);
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRegisters; ++i) store(results + i * Floats::kWidth, even[i] + odd[i]);
}
#endif

// A state as bf16, or as f32 of the same numbers; zeros up to a whole step.
LISSOME_INLINE void stage_state(const float* h, int64_t size, StateItem* to) {
  uint16_t rounded[Floats::kWidth];
  for (int64_t k = 0; k < count_bf16_steps(size) * kBf16Step; k += Floats::kWidth) {
    store(rounded, k < size ? load_first(h + k, lanes_left(size, k)) : zeros());
    store(to + k, load(rounded));
  }
}

template <int Gates>
LISSOME_INLINE void multiply_states(const RecurrentBf16Call& call, const RecurrentProduct& product) {
  const int64_t outputs = Gates * call.size, steps = count_bf16_steps(call.size);
  const int64_t panels = (outputs + kBf16Panel - 1) / kBf16Panel, panel_size = steps * kBf16Step * kBf16Panel;
  const int64_t rows = product.rows.end - product.rows.first;
  const uint16_t* weight = call.weight + product.rows.direction * panels * panel_size;
  const float* bias = call.bias ? call.bias + product.rows.direction * outputs : nullptr;
  for (int64_t n = 0; n < rows; ++n) {
    stage_state(product.state.rows + n * product.state.stride, call.size,
                reinterpret_cast<StateItem*>(product.sums + n * product.sums_stride + outputs));
  }
  for (int64_t panel = 0; panel < panels; ++panel, weight += panel_size) {
    const int64_t output = panel * kBf16Panel;
    for (int64_t n = 0; n < rows; ++n) {
      float* sums = product.sums + n * product.sums_stride;
      alignas(64) float results[kBf16Panel];
      multiply_row(reinterpret_cast<const StateItem*>(sums + outputs), weight, steps, results);
      const float* added = Gates == 4 ? product.gates + n * call.gates_row : bias;
      for (int64_t k = 0; k < kBf16Panel && output + k < outputs; k += Floats::kWidth) {
        const int64_t left = lanes_left(outputs, output + k);
        const Floats sum = load(results + k);
        store_first(sums + output + k, added ? sum + load_first(added + output + k, left) : sum, left);
      }
    }
  }
}

void run_lstm_bf16(const RecurrentBf16Call& call, int part, int parts) { run_recurrent<4>(call, part, parts); }
void run_gru_bf16(const RecurrentBf16Call& call, int part, int parts) { run_recurrent<3>(call, part, parts); }

}  // namespace
}  // namespace lissome

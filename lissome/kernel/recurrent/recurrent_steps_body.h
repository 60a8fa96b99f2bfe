// LSTM and GRU over Floats, whatever the weights: the walk over the steps and the gates. Who includes this has
// multiply_states<Gates>(call, product) for its call, which makes the sums of a step's rows: for LSTM with what the
// inputs contribute, for GRU with the bias.
#pragma once

#include "lissome/kernel/isa/vector.h"

#include "lissome/kernel/elementwise/activation_body.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/recurrent/recurrent.h"

namespace lissome {
namespace {

// Rows [first, end) of one direction.
struct RecurrentRows {
  int64_t direction, first, end;
};

LISSOME_INLINE int64_t lanes_left(int64_t size, int64_t k) {
  return size - k < Floats::kWidth ? size - k : Floats::kWidth;
}

// h of the step before: y where it was written, h0 before the first.
struct RecurrentState {
  const float* rows;
  int64_t stride;
};
LISSOME_INLINE RecurrentState find_state(const RecurrentSteps& call, RecurrentRows rows, int64_t step) {
  if (step == 0) return {call.h0 + (rows.direction * call.batch + rows.first) * call.size, call.size};
  const int64_t before = rows.direction == 0 ? step - 1 : call.steps - step;
  return {call.y + before * call.y_step + rows.first * call.y_row + rows.direction * call.size, call.y_row};
}

// One step of LSTM for one row; z holds all sums of the gates.
LISSOME_INLINE void finish_lstm_row(const float* z, float* c, float* h, int64_t size) {
  for (int64_t k = 0; k < size; k += Floats::kWidth) {
    const int64_t left = lanes_left(size, k);
    const Floats in = logistic(load_first(z + k, left)), forget = logistic(load_first(z + size + k, left));
    const Floats candidate = hyperbolic_tangent(load_first(z + 2 * size + k, left));
    const Floats out = logistic(load_first(z + 3 * size + k, left));
    const Floats cell = multiply_add(forget, load_first(c + k, left), in * candidate);
    store_first(c + k, cell, left);
    store_first(h + k, out * hyperbolic_tangent(cell), left);
  }
}

LISSOME_INLINE void finish_gru_row(const float* gates, const float* z, const float* before, float* h, int64_t size) {
  for (int64_t k = 0; k < size; k += Floats::kWidth) {
    const int64_t left = lanes_left(size, k);
    const Floats reset = logistic(load_first(gates + k, left) + load_first(z + k, left));
    const Floats keep = logistic(load_first(gates + size + k, left) + load_first(z + size + k, left));
    const Floats candidate = hyperbolic_tangent(
        multiply_add(reset, load_first(z + 2 * size + k, left), load_first(gates + 2 * size + k, left)));
    store_first(h + k, multiply_add(keep, load_first(before + k, left) - candidate, candidate), left);
  }
}

// The product of one step: of each row its state, its gates, and where its sums go.
struct RecurrentProduct {
  RecurrentRows rows;
  RecurrentState state;
  const float* gates;
  float* sums;
  int64_t sums_stride;
};

template <int Gates, typename Call>
void run_recurrent_step(const Call& call, RecurrentRows rows, int64_t step) {
  const int64_t t = rows.direction == 0 ? step : call.steps - 1 - step;
  const int64_t at = rows.direction * call.batch + rows.first, stride = recurrent_scratch(Gates, call.size);
  const float* gates =
      call.gates + t * call.gates_step + rows.first * call.gates_row + rows.direction * Gates * call.size;
  const RecurrentProduct product = {rows, find_state(call, rows, step), gates, call.scratch + at * stride, stride};
  multiply_states<Gates>(call, product);
  for (int64_t n = 0; n < rows.end - rows.first; ++n) {
    const float* z = product.sums + n * stride;
    float* h = call.y + t * call.y_step + (rows.first + n) * call.y_row + rows.direction * call.size;
    if constexpr (Gates == 4) {
      finish_lstm_row(z, call.cn + (at + n) * call.size, h, call.size);
    } else {
      finish_gru_row(gates + n * call.gates_row, z, product.state.rows + n * product.state.stride, h, call.size);
    }
  }
}

template <int Gates, typename Call>
void run_recurrent(const Call& call, int part, int parts) {
  const Range mine = split_evenly(call.directions * call.batch, part, parts);
  for (int64_t d = 0; d < call.directions; ++d) {
    const int64_t begin = d * call.batch, end = begin + call.batch;
    const RecurrentRows rows = {d, (mine.begin > begin ? mine.begin : begin) - begin,
                                (mine.end < end ? mine.end : end) - begin};
    if (rows.first >= rows.end) continue;
    const int64_t first = (begin + rows.first) * call.size, count = (rows.end - rows.first) * call.size;
    if (Gates == 4) __builtin_memcpy(call.cn + first, call.c0 + first, static_cast<size_t>(count) * sizeof(float));
    for (int64_t step = 0; step < call.steps; ++step) run_recurrent_step<Gates>(call, rows, step);
    const RecurrentState last = find_state(call, rows, call.steps);
    for (int64_t n = 0; n < rows.end - rows.first; ++n) {
      __builtin_memcpy(call.hn + first + n * call.size, last.rows + n * last.stride,
                       static_cast<size_t>(call.size) * sizeof(float));
    }
  }
}

}  // namespace
}  // namespace lissome

// LSTM and GRU layers over whole sequences, one direction or both. What the inputs contribute to the gates has been
// multiplied for all steps at once; here the recurrent products and the gates run step by step:
//   LSTM  i, f, g, o = gates + W h;  c = sigmoid(f) * c + sigmoid(i) * tanh(g);  h = sigmoid(o) * tanh(c)
//   GRU   r, z, n = gates, r', z', n' = W h + b;  n = tanh(n + sigmoid(r + r') * n');  h = n + sigmoid(z + z') * (h -
//   n)
// The second direction walks from the last step to the first. Parts share directions and rows of the batch.
// Weights are f32; or bf16, multiplied with h rounded to bf16; or s8, multiplied with h as u8, a scale and zero point a
// row (see linear_u8s8.h). Sums, gates and states are f32 in every form.
#pragma once

#include <cstdint>

namespace lissome {

// What all forms share. Always the first base of a call.
struct RecurrentSteps {
  const float* gates = nullptr;  // of step t and row n at t * gates_step + n * gates_row: [directions][gates][size]
  const float* bias = nullptr;   // GRU: [directions][3][size], or null
  const float* h0 = nullptr;     // [directions, batch, size]
  const float* c0 = nullptr;     // LSTM: the same
  float* y = nullptr;            // at t * y_step + n * y_row: [directions][size]
  float* hn = nullptr;           // [directions, batch, size]
  float* cn = nullptr;           // LSTM: the same; holds c on the way
  float* scratch = nullptr;      // [directions, batch, recurrent_scratch()]
  int64_t steps = 0, batch = 0, size = 0, directions = 1;
  int64_t gates_step = 0, gates_row = 0, y_step = 0, y_row = 0;  // elements
};

// Of one row: the sums of its gates, then h as the weights want it.
constexpr int64_t recurrent_scratch(int64_t gates, int64_t size) { return gates * size + (size + 63) / 64 * 64; }

struct RecurrentCall : RecurrentSteps {
  const float* weight = nullptr;  // [directions], each packed as for linear_f32: [gates * size, size]
};

struct RecurrentBf16Call : RecurrentSteps {
  const uint16_t* weight = nullptr;  // [directions], each packed as for linear_bf16
};

struct RecurrentU8S8Call : RecurrentSteps {
  const int8_t* weight = nullptr;        // [directions], each packed as for linear_u8s8
  const float* scales = nullptr;         // [directions][gates * size]
  const int32_t* weight_sums = nullptr;  // the same
};

}  // namespace lissome

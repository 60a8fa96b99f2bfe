// LSTM and GRU layers over whole sequences, one direction or both. What the inputs contribute to the gates has been
// multiplied for all steps at once; here the recurrent products and the gates run step by step:
//   LSTM  i, f, g, o = gates + W h;  c = sigmoid(f) * c + sigmoid(i) * tanh(g);  h = sigmoid(o) * tanh(c)
//   GRU   r, z, n = gates, r', z', n' = W h + b;  n = tanh(n + sigmoid(r + r') * n');  h = n + sigmoid(z + z') * (h -
//   n)
// The second direction walks from the last step to the first. Parts share directions and rows of the batch.
#pragma once

#include <cstdint>

namespace lissome {

struct RecurrentCall {
  const float* gates = nullptr;   // of step t and row n at t * gates_step + n * gates_row: [directions][gates][size]
  const float* weight = nullptr;  // [directions], each packed as for linear_f32: [gates * size, size]
  const float* bias = nullptr;    // GRU: [directions][3][size], or null
  const float* h0 = nullptr;      // [directions, batch, size]
  const float* c0 = nullptr;      // LSTM: the same
  float* y = nullptr;             // at t * y_step + n * y_row: [directions][size]
  float* hn = nullptr;            // [directions, batch, size]
  float* cn = nullptr;            // LSTM: the same; holds c on the way
  float* scratch = nullptr;       // [directions, batch, gates * size]
  int64_t steps = 0, batch = 0, size = 0, directions = 1;
  int64_t gates_step = 0, gates_row = 0, y_step = 0, y_row = 0;  // elements
};

}  // namespace lissome

// LSTM and GRU with weights of f32: the recurrent product is the f32 linear kernel on the rows of one step.
#pragma once

#include "lissome/kernel/gemm/linear_f32_body.h"
#include "lissome/kernel/recurrent/recurrent_steps_body.h"

namespace lissome {
namespace {

template <int Gates>
LISSOME_INLINE void multiply_states(const RecurrentCall& call, const RecurrentProduct& product) {
  const int64_t outputs = Gates * call.size, panels = (outputs + kLinearPanel - 1) / kLinearPanel;
  LinearF32Call linear;
  linear.x = product.state.rows, linear.x_stride = product.state.stride;
  linear.weight = call.weight + product.rows.direction * panels * kLinearPanel * call.size;
  linear.y = product.sums, linear.y_stride = product.sums_stride;
  linear.rows = product.rows.end - product.rows.first, linear.inputs = call.size, linear.outputs = outputs;
  if (Gates == 4) {
    linear.residual = product.gates, linear.residual_stride = call.gates_row;
    linear.residual_place = ResidualPlace::before_activation;
  } else if (call.bias) {
    linear.bias = call.bias + product.rows.direction * outputs;
  }
  run_linear_f32(linear, 0, 1);
}

void run_lstm(const RecurrentCall& call, int part, int parts) { run_recurrent<4>(call, part, parts); }
void run_gru(const RecurrentCall& call, int part, int parts) { run_recurrent<3>(call, part, parts); }

}  // namespace
}  // namespace lissome

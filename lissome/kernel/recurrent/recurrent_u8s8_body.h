// LSTM and GRU with weights of s8: the states of a step become u8 row by row, then the int8 linear multiplies them.
#pragma once

#include "lissome/kernel/gemm/linear_u8s8_body.h"
#include "lissome/kernel/recurrent/recurrent_steps_body.h"

namespace lissome {
namespace {

// One row at a time: its weights stay in cache from row to row, and the row's scale beside it.
template <int Gates>
LISSOME_INLINE void multiply_states(const RecurrentU8S8Call& call, const RecurrentProduct& product) {
  const int64_t outputs = Gates * call.size, direction = product.rows.direction;
  const int64_t block = (outputs + kU8S8Panel - 1) / kU8S8Panel * measure_panel(call.size, {}).panel;
  for (int64_t n = 0; n < product.rows.end - product.rows.first; ++n) {
    float* sums = product.sums + n * product.sums_stride;
    float scale = 0;
    int32_t zero = 0;
    QuantizeRowsCall quantize;
    quantize.y = reinterpret_cast<uint8_t*>(sums + outputs);
    quantize.scales = &scale, quantize.zeros = &zero;
    quantize.inputs = call.size;
    quantize_row(quantize, product.state.rows + n * product.state.stride, 0);
    LinearU8S8Call linear;
    linear.x = quantize.y, linear.weight = call.weight + direction * block;
    linear.multiplier = call.scales + direction * outputs, linear.weight_sums = call.weight_sums + direction * outputs;
    linear.row_scales = &scale, linear.row_zeros = &zero;
    linear.y = sums, linear.y_stride = product.sums_stride;
    linear.rows = 1, linear.inputs = call.size, linear.outputs = outputs;
    if (Gates == 4) {
      linear.residual = product.gates + n * call.gates_row;
    } else if (call.bias) {
      linear.bias = call.bias + direction * outputs;
    }
    run_linear_u8s8(linear, 0, 1);
  }
}

void run_lstm_u8s8(const RecurrentU8S8Call& call, int part, int parts) { run_recurrent<4>(call, part, parts); }
void run_gru_u8s8(const RecurrentU8S8Call& call, int part, int parts) { run_recurrent<3>(call, part, parts); }

}  // namespace
}  // namespace lissome

// Products of rows with weights of 4 or 8 bits that are unpacked in registers. Rows have a scale for each group of 32
// inputs, weights for each 32, 64 or 128, after the scheme of llama.cpp's Q4_0 and Q8_0:
//   acc[m, n, g] = sum over the inputs k of group g of x[m, k] * weight[n, k]                exact
//   y[m, n] = sum over g of f32(acc[m, n, g]) * (weight_scale[n, g] * x_scale[m, g])         in the order of g, each
//   term
//                                                                                  added by a fused multiply-add
//   y = act(y + bias[n] + residual[m, n])
//
// Packed weight: blocks of 16 outputs, numbers without sign (plus 128, plus 8), a group of 32 inputs as 8 fours:
//   8 bits: packed[n / 16][g][four][n % 16][k % 4]
//   4 bits: packed[n / 16][g][four % 4][n % 16][k % 4], fours 0 to 3 in the low half of a byte, 4 to 7 in the high half
// and their scales, bf16: packed[n / 16][k / scale_inputs][n % 16].
#pragma once

#include <cstdint>

#include "lissome/kernel/elementwise/activation.h"

namespace lissome {

inline constexpr int64_t kWeightGroup = 32;  // inputs
inline constexpr int64_t kGroupBlock = 16;   // outputs

struct LinearGroupCall {
  const int8_t* x = nullptr;                  // [rows, inputs]
  const float* x_scales = nullptr;            // [rows, inputs / 32]
  const int32_t* x_sums = nullptr;            // [rows, inputs / 32]: of the numbers of a group
  const uint8_t* weight = nullptr;            // packed
  const uint16_t* weight_scales = nullptr;    // bf16, packed
  const float* bias = nullptr;                // [outputs], or null
  const float* residual = nullptr;            // [rows, outputs], or null; may be y itself
  float* y = nullptr;                         // [rows, outputs]
  int64_t rows = 0, inputs = 0, outputs = 0;  // inputs: a multiple of 32
  int bits = 8;                               // 4 or 8
  int64_t scale_inputs = kWeightGroup;        // 32, 64 or 128; divides the inputs
  Epilogue epilogue;
};

int64_t packed_group_size(int64_t outputs, int64_t inputs, int bits);                // bytes
int64_t packed_group_scales(int64_t outputs, int64_t inputs, int64_t scale_inputs);  // elements
// `weight` is [outputs, inputs], dense in row order, from -8 to 7 for 4 bits; `scales` are [outputs, inputs /
// scale_inputs].
void pack_group_weight(const int8_t* weight, int64_t outputs, int64_t inputs, int bits, uint8_t* packed);
void pack_group_scales(const uint16_t* scales, int64_t outputs, int64_t inputs, int64_t scale_inputs, uint16_t* packed);

// y[i] = row indices[i] of a packed weight: f32(number) * scale. An index outside of [0, rows) sets *fault and writes
// zeros.
struct GatherGroupsCall {
  const uint8_t* table = nullptr;  // [rows, columns], packed as a weight of `rows` outputs
  const uint16_t* scales = nullptr;
  const void* indices = nullptr;  // i64, or i32
  float* y = nullptr;             // [count, columns]
  int64_t* fault = nullptr;
  int64_t fault_code = 0;
  int64_t rows = 0, columns = 0, count = 0;
  int bits = 8;
  int64_t scale_inputs = kWeightGroup;
  bool narrow_indices = false;
};

// Rows of f32 -> s8 with a scale for each group of 32:
//   scale = largest magnitude / 127, 1 where that is below 1e-30; x = round half to even(x * (1 / scale)).
// NaN or infinity in a group: scale NaN, numbers 0.
struct QuantizeGroupsCall {
  const float* x = nullptr;
  int8_t* y = nullptr;
  float* scales = nullptr;  // [rows, inputs / 32]
  int32_t* sums = nullptr;  // [rows, inputs / 32]: of the numbers of a group
  int64_t rows = 0, inputs = 0;
};

}  // namespace lissome

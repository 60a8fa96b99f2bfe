// Products of u8 activations and s8 weights with sums in s32, and what makes f32 or u8 of the sums:
//   acc[m, n] = sum over k of (x[m, k] - x_zero) * weight[n, k]                       exact
//   y = f32(acc) * multiplier[n] + bias[n]         one rounding; y = act(y + residual)
//   u8 results: q = round half to even(clamp(y * out_inverse, -out_zero, 255 - out_zero)) + out_zero, NaN to 0
// With row_scales (activations quantized row by row) multiplier[n] * row_scales[m], rounded to f32, stands for
// multiplier[n], and row_zeros[m] for x_zero.
//
// Packed weight: panels of 64 outputs, each [inputs / 4, rounded up][64][4], filled with zeros.
#pragma once

#include <cstdint>

#include "lissome/kernel/conv_f32.h"

namespace lissome {

// The same for linear and convolution. Always the first base of a call.
struct OutputU8S8 {
  const float* multiplier = nullptr;          // [outputs]
  const float* bias = nullptr;                // [outputs], or null
  const int32_t* weight_sums = nullptr;       // [outputs]: of the weights of an output
  const float* residual = nullptr;            // [rows, outputs], or null; may be y itself
  const float* row_scales = nullptr;          // [rows], or null
  const int32_t* row_zeros = nullptr;         // [rows], with row_scales
  void* y = nullptr;                          // f32, or u8 when out_inverse is not 0
  int64_t residual_stride = 0, y_stride = 0;  // elements from row to row
  int32_t x_zero = 0;
  int32_t out_zero = 0;
  float out_inverse = 0;  // 1 / scale of u8 results
  Epilogue epilogue;
};

struct LinearU8S8Call : OutputU8S8 {
  const uint8_t* x = nullptr;
  const int8_t* weight = nullptr;  // packed
  int64_t rows = 0, inputs = 0, outputs = 0;
  int64_t x_stride = 0;
};

// Channels-last, as in conv_f32.h; outside of x lies x_zero.
struct ConvU8S8Call : OutputU8S8 {
  const uint8_t* x = nullptr;
  const int8_t* weight = nullptr;   // packed: one block a group, panels of [taps][inputs / 4, rounded up][64][4]
  const uint8_t* border = nullptr;  // in_channels times x_zero
  int64_t in_channels = 0, out_channels = 0, groups = 1;
  Window window;
};

int64_t packed_u8s8_size(int64_t outputs, int64_t inputs, int64_t taps);  // bytes
// `weight` is [outputs, inputs, taps], dense in row order. Also fills weight_sums[outputs].
void pack_u8s8(const int8_t* weight, int64_t outputs, int64_t inputs, int64_t taps, int8_t* packed,
               int32_t* weight_sums);

// Rows of f32 -> u8 with a scale and zero point a row:
//   low = min(0, smallest), high = max(0, largest), scale = (high - low) / 255, 1 where that is below 1e-30;
//   zero = round half to even(-low / scale) within 0..255; q as above. NaN or infinity in a row: scale NaN, q 0.
struct QuantizeRowsCall {
  const float* x = nullptr;
  uint8_t* y = nullptr;
  float* scales = nullptr;
  int32_t* zeros = nullptr;
  int64_t rows = 0, inputs = 0;
  int64_t x_stride = 0, y_stride = 0;
};

}  // namespace lissome

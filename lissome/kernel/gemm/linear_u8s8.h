// Products of u8 activations and s8 weights with sums in s32, and what makes f32 or u8 of the sums:
//   acc[m, n] = sum over k of (x[m, k] - x_zero) * weight[n, k]                       exact
//   y = f32(acc) * multiplier[n] + bias[n]         one rounding; y = act(y + residual)
//   a u8 residual counts as f32(residual - residual_zero) * residual_scale, added with one rounding
//   u8 results: q = round half to even(clamp(y * out_inverse, -out_zero, 255 - out_zero)) + out_zero, NaN to 0
// With row_scales (activations quantized row by row) multiplier[n] * row_scales[m], rounded to f32, stands for
// multiplier[n], and row_zeros[m] for x_zero.
//
// Packed weight: panels of 32 outputs. The inputs of a panel come in runs: one of a linear; of a convolution one for
// each row of its window, taps side by side, or one for each tap (RunsU8S8). A tap's inputs are filled up with zeros to
// fours. A run is cut into steps of 16 fours, or one shorter step; a step is two squares of 16 outputs, as tile
// registers take them:
//   packed[n / 32][run][four / 16][n / 16 % 2][four % 16][n % 16][k % 4]
#pragma once

#include <cstddef>
#include <cstdint>

#include "lissome/kernel/conv/conv_f32.h"

namespace lissome {

// Where the results of a transposed convolution lie whose windows do not overlap: outputs of a pixel come in blocks,
// one for each place of the window in row order, and block (i, j) of pixel (h, w) is pixel (h * rows + i, w * columns +
// j).
struct SpreadU8S8 {
  int64_t width = 0;              // of x; 0: results lie as they are numbered
  int64_t rows = 1, columns = 1;  // of the window
  int64_t outputs = 0;            // of a block, a multiple of 32; y_stride is columns * outputs
};

// The same for linear and convolution. Always the first base of a call.
struct OutputU8S8 {
  const float* multiplier = nullptr;          // [outputs]
  const float* bias = nullptr;                // [outputs], or null
  const int32_t* weight_sums = nullptr;       // [outputs]: of the weights of an output
  const float* residual = nullptr;            // [rows, outputs], or null; may be y itself
  const uint8_t* residual_u8 = nullptr;       // the same in u8
  const uint16_t* residual_bf16 = nullptr;    // the same in bf16
  const float* row_scales = nullptr;          // [rows], or null
  const int32_t* row_zeros = nullptr;         // [rows], with row_scales
  void* y = nullptr;                          // f32, u8 when out_inverse is not 0, or bf16
  int64_t residual_stride = 0, y_stride = 0;  // elements from row to row
  int32_t x_zero = 0;
  int32_t out_zero = 0;
  float out_inverse = 0;  // 1 / scale of u8 results
  float residual_scale = 0;
  int32_t residual_zero = 0;
  bool narrows = false;  // y is bf16
  Epilogue epilogue;
  SpreadU8S8 spread;
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
  const int8_t* weight = nullptr;   // packed: one block a group
  const uint8_t* border = nullptr;  // in_channels times x_zero
  std::byte* scratch = nullptr;     // parts times conv_u8s8_scratch() bytes, aligned to 64
  int64_t in_channels = 0, out_channels = 0, groups = 1;
  Window window;
};

inline constexpr int64_t kU8S8Panel = 32;  // outputs

struct RunsU8S8 {
  int64_t taps = 1, taps_per_run = 1;
};
// Taps beside each other share a run where their inputs lie beside each other in x.
RunsU8S8 choose_runs(const Window& window, int64_t groups);

int64_t packed_u8s8_size(int64_t outputs, int64_t inputs, RunsU8S8 runs);  // bytes
// `weight` is [outputs, inputs, taps], dense in row order. Also fills weight_sums[outputs].
void pack_u8s8(const int8_t* weight, int64_t outputs, int64_t inputs, RunsU8S8 runs, int8_t* packed,
               int32_t* weight_sums);

int64_t conv_u8s8_scratch(const Window& window, int64_t in_channels);  // bytes a part

// Rows of f32, with a factor for each column where there are factors -> u8 with a scale and zero point a row:
//   low = min(0, smallest), high = max(0, largest), scale = (high - low) / 255, 1 where that is below 1e-30;
//   zero = round half to even(-low / scale) within 0..255; q as above. NaN or infinity in a row: scale NaN, q 0.
struct QuantizeRowsCall {
  const float* x = nullptr;
  const uint16_t* x_bf16 = nullptr;        // in place of x
  const float* factors = nullptr;          // [inputs], or null
  const uint16_t* factors_bf16 = nullptr;  // those of x_bf16
  uint8_t* y = nullptr;
  float* scales = nullptr;
  int32_t* zeros = nullptr;
  int64_t rows = 0, inputs = 0;
  int64_t x_stride = 0, y_stride = 0;
};

// An image of f32 by planes -> u8 channels-last, with one scale and zero point.
struct QuantizeImageCall {
  const float* x = nullptr;  // [batch, channels, pixels]
  uint8_t* y = nullptr;      // [batch, pixels, channels]
  int64_t batch = 0, channels = 0, pixels = 0;
  float inverse = 0;  // 1 / scale
  int32_t zero = 0;
};

}  // namespace lissome

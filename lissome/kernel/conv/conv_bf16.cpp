// Sizes, and the portable form.
#include "lissome/kernel/conv/conv_bf16.h"

#include <algorithm>

#include "lissome/kernel/conv/conv_bf16_pieces.h"
#include "lissome/kernel/conv/kernel_versions.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/portable_output.h"

namespace lissome {
int64_t packed_conv_bf16_size(const ConvBf16Call& call) {
  int64_t size = 0;
  for_each_piece(call, [&](const ConvPiece& piece, const Phase&) { size += piece.packed_size(); });
  return size;
}

int64_t conv_bf16_scratch(const ConvBf16Call& call) {
  int64_t most = 0;
  for_each_piece(call, [&](const ConvPiece& piece, const Phase&) {
    // Columns in f32, of the longest chunk that any form takes.
    const int64_t row = count_bf16_steps(piece.inputs * piece.taps()) * kBf16Step * 4;
    const int64_t pixels = piece.window.batch * piece.window.out_height * piece.window.out_width;
    const int64_t columns = std::min(pixels, std::max<int64_t>(choose_column_chunk(piece, 1), 32)) * row;
    const StagedImage image = plan_image(piece, call.in_channels);
    most = std::max({most, columns, image.usable ? image.elements() * 2 : 0});
  });
  if (call.planes) most += plan_band(call).elements * 2;
  return (most + 63) / 64 * 64;
}

namespace {

double read_input(const ConvBf16Call& call, int64_t n, int64_t h, int64_t v, int64_t channel) {
  const Window& w = call.window;
  const int64_t plain = ((n * w.height + h) * w.width + v) * call.in_channels + channel;
  const int64_t at = call.planes ? ((n * call.in_channels + channel) * w.height + h) * w.width + v : plain;
  // Rounded, as every form does.
  return widen_bf16(call.wide_planes ? narrow_bf16(call.wide_planes[at]) : call.x[at]);
}

double sum_window(const ConvBf16Call& call, const ConvPiece& piece, int64_t n, int64_t oh, int64_t ow, int64_t oc) {
  const Window& w = piece.window;
  const int64_t steps = count_bf16_steps(piece.inputs * piece.taps());
  double sum = call.bias ? call.bias[piece.y_offset + oc] : 0;
  for (int64_t kh = 0; kh < w.kernel_height; ++kh) {
    for (int64_t kw = 0; kw < w.kernel_width; ++kw) {
      const int64_t h = oh * w.stride_height - w.pad_height + kh * w.dilation_height;
      const int64_t v = ow * w.stride_width - w.pad_width + kw * w.dilation_width;
      if (h < 0 || h >= w.height || v < 0 || v >= w.width) continue;
      const int64_t tap = kh * w.kernel_width + kw;
      for (int64_t ic = 0; ic < piece.inputs; ++ic) {
        sum += read_input(call, n, h, v, piece.x_offset + ic) *
               widen_bf16(call.weight[piece.weight_offset + find_packed_bf16(oc, piece.find_input(tap, ic), steps)]);
      }
    }
  }
  return sum;
}

}  // namespace

void conv_bf16_portable(const ConvBf16Call& call, int part, int parts) {
  for_each_piece(call, [&](const ConvPiece& piece, const Phase&) {
    const Window& w = piece.window;
    const Range pixels = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
    for (int64_t pixel = pixels.begin; pixel < pixels.end; ++pixel) {
      const int64_t ow = pixel % w.out_width, oh = pixel / w.out_width % w.out_height;
      const int64_t n = pixel / w.out_width / w.out_height;
      const int64_t row = piece.map.base + n * piece.map.image + oh * piece.map.line + ow * piece.map.column;
      for (int64_t oc = 0; oc < piece.outputs; ++oc) {
        store_portable(call, row, piece.y_offset + oc, sum_window(call, piece, n, oh, ow, oc));
      }
    }
  });
}

}  // namespace lissome

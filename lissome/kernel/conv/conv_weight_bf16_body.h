// The weight gradient of a bf16 convolution: with AVX-512 BF16 in pairs of neighbouring pixels of a line of dy, whose
// products one instruction adds; else widened to f32.
#pragma once

#include "lissome/kernel/conv/conv_weight_body.h"

namespace lissome {
namespace {

#ifdef __AVX512BF16__

// An item is two pixels of one channel. Item j of a line of x is what pixels 2i and 2i + 1 of dy meet when the first of
// them meets pixel j: pixels j and j + stride. A line of odd length ends in an item whose second half does not count.
struct PairWeightForm {
  using Number = uint16_t;
  using Item = uint32_t;

  static constexpr int64_t count_dy_items(int64_t pixels) { return (pixels + 1) / 2 * kLinearPanel; }

  // 16 channels of a pixel, as many as are there; zeros without a pixel.
  static LISSOME_INLINE __m512i load_channels(const uint16_t* from, int64_t count) {
    if (!from || count <= 0) return _mm512_setzero_si512();
    return _mm512_cvtepu16_epi32(count >= 16 ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))
                                             : _mm256_maskz_loadu_epi16(first_lanes(count), from));
  }
  static LISSOME_INLINE __m512i join(__m512i first, __m512i second) {
    return _mm512_or_si512(first, _mm512_slli_epi32(second, 16));
  }
  static LISSOME_INLINE void join_channels(const uint16_t* first, const uint16_t* second, int64_t count, uint32_t* to) {
    for (int64_t c = 0; c < count; c += 16) {
      const __m512i items = join(load_channels(first ? first + c : nullptr, count - c),
                                 load_channels(second ? second + c : nullptr, count - c));
      if (count - c >= 16) {
        _mm512_storeu_si512(to + c, items);
      } else {
        _mm512_mask_storeu_epi32(to + c, first_lanes(count - c), items);
      }
    }
  }

  static LISSOME_INLINE void copy_dy_line(const uint16_t* from, int64_t channels, int64_t pixels, int64_t outputs,
                                          uint32_t* to) {
    for (int64_t i = 0; i < pixels; i += 2, from += 2 * channels, to += kLinearPanel) {
      const uint16_t* next = i + 1 < pixels ? from + channels : nullptr;
      for (int64_t n = 0; n < kLinearPanel; n += 16) {
        _mm512_storeu_si512(
            to + n, join(load_channels(from + n, outputs - n), load_channels(next ? next + n : nullptr, outputs - n)));
      }
    }
  }

  static LISSOME_INLINE void copy_x_line(const WeightLine<uint16_t>& line, uint32_t* to) {
    const int64_t inputs = line.inputs;
    const auto find_pixel = [&](int64_t at) {
      return at >= line.pad && at < line.pad + line.width ? line.from + (at - line.pad) * line.channels : nullptr;
    };
    // Where all channels are taken, items between both ends are made in one run.
    const int64_t last = line.pad + line.width - line.stride;
    const bool runs = inputs == line.channels && line.taps > 1;
    const int64_t begin = runs ? (line.pad < line.pitch ? line.pad : line.pitch) : line.pitch;
    const int64_t end = last < line.pitch ? last : line.pitch;
    // With one tap only every second pixel of dy begins a pair.
    const int64_t step = line.taps > 1 ? 1 : 2 * line.stride;
    int64_t at = 0;
    for (; at < begin; at += step) {
      join_channels(find_pixel(at), find_pixel(at + line.stride), inputs, to + at * inputs);
    }
    if (runs && begin < end) {
      join_channels(line.from, line.from + line.stride * inputs, (end - begin) * inputs, to + begin * inputs);
      at = end;
    }
    for (; at < line.pitch; at += step) {
      join_channels(find_pixel(at), find_pixel(at + line.stride), inputs, to + at * inputs);
    }
  }

  template <int Rows, int Vectors>
  static LISSOME_INLINE void add_pair(const uint32_t* x, uint32_t mask, const uint32_t* dy,
                                      Floats (&sums)[Rows][Vectors]) {
    __m512bh columns[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) columns[v] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(dy + v * 16));
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const auto one = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(x[r] & mask)));
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) sums[r][v] = {_mm512_dpbf16_ps(sums[r][v].v, one, columns[v])};
    }
  }

  template <int Rows, int Vectors>
  static LISSOME_INLINE void add_line(const WeightPixels& at, const uint32_t* x, const uint32_t*& dy,
                                      Floats (&sums)[Rows][Vectors]) {
    for (int64_t i = 0; i < at.pixels / 2; ++i, x += 2 * at.pixel_step, dy += kLinearPanel) {
      add_pair(x, ~uint32_t{0}, dy, sums);
    }
    if (at.pixels % 2 == 0) return;
    add_pair(x, 0xffff, dy, sums);
    dy += kLinearPanel;
  }
};

using Bf16WeightForm = PairWeightForm;
#else
using Bf16WeightForm = WideWeightForm<uint16_t>;
#endif

LISSOME_INLINE void run_conv_weight_bf16(const ConvWeightBf16Call& call, int part, int parts) {
  run_weight_units<Bf16WeightForm>(call, part, parts);
}

}  // namespace
}  // namespace lissome

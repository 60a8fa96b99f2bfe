// The grouped convolution in bf16 on tile registers: sixteen channels at a time, against weights with zeros between
// their groups. The channels' lines of x are laid beside each other with their padding, where a step of a tile reads
// one tap or two neighbouring ones. A NaN or an infinity would reach its
// neighbours through the zeros, so that pixels which see one are computed a channel at a time.
#pragma once

#include "lissome/kernel/depthwise/grouped_pairs_body.h"
#include "lissome/kernel/isa/tiles_bf16.h"

namespace lissome {
namespace {

constexpr int64_t kTilePixels = 16, kTileChannels = 16, kPixelTiles = 4;
constexpr int64_t kChunkPixels = kPixelTiles * kTilePixels;  // of a line of y
constexpr int64_t kKeptLines = 8, kLinePixels = 160;         // of x: 40 KiB of the stack
constexpr int64_t kGroupTaps = 49;
constexpr int64_t kTapItems = kTileChannels * kTileChannels;

// Of groups of two and four, three quarters and more of what the tiles multiply is zero.
bool fits_tiles(const GroupedBf16Call& call) {
  const Window& w = call.window;
  return call.group >= 8 && (w.kernel_height - 1) * w.dilation_height < kKeptLines &&
         (kChunkPixels - 1) * w.stride_width + (w.kernel_width - 1) * w.dilation_width < kLinePixels &&
         w.kernel_height * w.kernel_width <= kGroupTaps;
}

// Tiles 0 to 3 hold sums, 4 and 5 pixels with two taps and with one, 6 and 7 weights of two taps and of one.
void shape_group_tiles() {
  TileShapes shapes;
  for (int tile = 0; tile < 8; ++tile) shapes.rows[tile] = 16, shapes.row_bytes[tile] = 64;
  shapes.row_bytes[5] = 32, shapes.rows[7] = 8;
  load_tile_shapes(shapes);
}

struct GroupRunner {
  const GroupedBf16Call& call;
  const Window& w;
  int64_t c = 0;  // of the sixteen
  __mmask16 there = 0;
  int64_t next = 0;            // line of x that is not kept yet
  bool unbounded[kKeptLines];  // holds a NaN or an infinity
  alignas(64) uint16_t weight[kGroupTaps][kTapItems];
  alignas(64) uint16_t lines[kKeptLines][kLinePixels * kTileChannels];

  explicit GroupRunner(const GroupedBf16Call& given) : call(given), w(given.window) {}

  // Pairs of inputs as the tiles multiply them: [tap][inputs / 2][channels][2].
  void pack_weight() {
    const int64_t group = call.group;
    for (int64_t tap = 0; tap < w.kernel_height * w.kernel_width; ++tap) {
      for (int64_t pair = 0; pair < kTileChannels / 2; ++pair) {
        const int64_t first = 2 * pair & -group;
        const auto mine = static_cast<__mmask16>(((1u << group) - 1) << first & there);
        const uint16_t* row = call.weight + ((tap * group + 2 * pair - first) / 2 * call.channels + c) * 2;
        _mm512_store_si512(weight[tap] + pair * 2 * kTileChannels, _mm512_maskz_loadu_epi32(mine, row));
      }
    }
  }

  // The pixels of line h of x that a chunk reads; `left` may lie outside.
  void keep_line(const uint16_t* image, int64_t h, int64_t left, int64_t pixels) {
    uint16_t* to = lines[h & (kKeptLines - 1)];
    const bool inside = h >= 0 && h < w.height;
    const int64_t begin = inside ? (left < 0 ? (-left < pixels ? -left : pixels) : 0) : pixels;
    const int64_t end = w.width - left < pixels ? w.width - left : pixels;
    __m256i sevens = _mm256_setzero_si256();
    const __m256i exponent = _mm256_set1_epi16(0x7f80);
    __mmask16 full = 0;
    for (int64_t p = 0; p < pixels; ++p) {
      __m256i x = sevens;
      if (p >= begin && p < end) {
        x = _mm256_maskz_loadu_epi16(there, image + ((h * w.width) + left + p) * call.channels + c);
        full |= _mm256_cmpeq_epi16_mask(_mm256_and_si256(x, exponent), exponent);
      }
      _mm256_store_si256(reinterpret_cast<__m256i*>(to + p * kTileChannels), x);
    }
    unbounded[h & (kKeptLines - 1)] = full != 0;
  }

  template <int Tiles>
  LISSOME_INLINE void multiply_pixels(const uint16_t* x, const uint16_t* tap, bool two) const {
    const int64_t apart = w.stride_width * kTileChannels;
    const auto multiply = [&]<int Tile>() {
      if constexpr (Tile < Tiles) {
        const uint16_t* from = x + Tile * kTilePixels * apart;
        if (two) {
          load_tile<4>(from, apart * 2);
          multiply_tiles<Tile, 4, 6>();
        } else {
          load_tile<5>(from, apart * 2);
          multiply_tiles<Tile, 5, 7>();
        }
      }
    };
    if (two) {
      load_tile<6>(tap, 64);
    } else {
      load_tile<7>(tap, 64);
    }
    multiply.template operator()<0>();
    multiply.template operator()<1>();
    multiply.template operator()<2>();
    multiply.template operator()<3>();
  }

  // Sums of `Tiles` times sixteen pixels; `top` is the line of x of their first tap.
  template <int Tiles>
  void sum_pixels(int64_t top, float* sums) const {
    clear_tile<0>(), clear_tile<1>(), clear_tile<2>(), clear_tile<3>();
    const bool pairs = w.dilation_width == 1;
    for (int64_t h = 0; h < w.kernel_height; ++h) {
      const uint16_t* line = lines[(top + h * w.dilation_height) & (kKeptLines - 1)];
      for (int64_t u = 0; u < w.kernel_width;) {
        const bool two = pairs && u + 1 < w.kernel_width;
        multiply_pixels<Tiles>(line + u * w.dilation_width * kTileChannels, weight[h * w.kernel_width + u], two);
        u += two ? 2 : 1;
      }
    }
    constexpr int64_t kTile = kTilePixels * kTileChannels;
    store_tile<0>(sums, 64);
    if constexpr (Tiles > 1) store_tile<1>(sums + kTile, 64);
    if constexpr (Tiles > 2) store_tile<2>(sums + 2 * kTile, 64);
    if constexpr (Tiles > 3) store_tile<3>(sums + 3 * kTile, 64);
  }

  // With the activation as a function that the compiler sees through.
  void finish(int64_t row, int64_t count, const float* sums) const {
    const int64_t lanes = call.channels - c;
    const Floats bias = call.bias ? load_lanes(call.bias + c, lanes) : zeros();
    choose_activation(call.epilogue, [&](const auto& activation) {
      for (int64_t p = 0; p < count; ++p)
        finish_pixel(call, row + p, c, lanes, load(sums + p * kTileChannels) + bias, activation);
    });
  }

  // Those that a line of y reads from line `top` of image n of x on, for so many tiles from pixel `left` on.
  void keep_lines(int64_t n, int64_t top, int64_t left, int64_t tiles) {
    const int64_t end = top + (w.kernel_height - 1) * w.dilation_height + 1;
    const int64_t pixels = (tiles * kTilePixels - 1) * w.stride_width + (w.kernel_width - 1) * w.dilation_width + 1;
    for (next = next > top ? next : top; next < end; ++next)
      keep_line(call.x + n * w.height * w.width * call.channels, next, left, pixels);
  }

  // Pixels [first, first + count) of line oh of image n of y; `more` where the next line of y comes next. What it reads
  // is kept before this one is finished: tiles that are loaded right after their lines were stored wait for them.
  void run_line(int64_t n, int64_t oh, int64_t first, int64_t count, bool more) {
    const int64_t top = oh * w.stride_height - w.pad_height, left = first * w.stride_width - w.pad_width;
    const int64_t tiles = (count + kTilePixels - 1) / kTilePixels;
    keep_lines(n, top, left, tiles);
    const int64_t row = (n * w.out_height + oh) * w.out_width + first;
    bool bounded = true;
    for (int64_t h = 0; h < w.kernel_height; ++h)
      bounded &= !unbounded[(top + h * w.dilation_height) & (kKeptLines - 1)];
    if (!bounded) {
      const Range channels = {c, c + kTileChannels < call.channels ? c + kTileChannels : call.channels};
      return choose_groups<SmallPairs, WidePairs>(
          call.group, [&](const auto& groups) { run_pixels(call, {row, row + count}, channels, groups); });
    }
    alignas(64) float sums[kChunkPixels * kTileChannels];
    switch (tiles) {
      case 1: sum_pixels<1>(top, sums); break;
      case 2: sum_pixels<2>(top, sums); break;
      case 3: sum_pixels<3>(top, sums); break;
      default: sum_pixels<4>(top, sums); break;
    }
    if (more) keep_lines(n, top + w.stride_height, left, tiles);
    finish(row, count, sums);
  }
};

LISSOME_INLINE void run_grouped_bf16(const GroupedBf16Call& call, int part, int parts) {
  const Window& w = call.window;
  if (!fits_tiles(call)) return run_group_pairs(call, part, parts);
  const int64_t sixteens = (call.channels + kTileChannels - 1) / kTileChannels;
  const int64_t chunks = (w.out_width + kChunkPixels - 1) / kChunkPixels, columns = w.batch * chunks;
  const Range range = split_evenly(sixteens * columns * w.out_height, part, parts);
  GroupRunner runner(call);
  shape_group_tiles();
  int64_t packed = -1, column = -1;
  for (int64_t at = range.begin; at < range.end; ++at) {
    const int64_t oh = at % w.out_height, now = at / w.out_height, sixteen = now / columns;
    if (sixteen != packed) {
      packed = sixteen, runner.c = sixteen * kTileChannels;
      runner.there = first_lanes(call.channels - runner.c < 16 ? call.channels - runner.c : 16);
      runner.pack_weight();
    }
    if (now != column) column = now, runner.next = -w.pad_height;
    const int64_t first = now % chunks * kChunkPixels;
    runner.run_line(now / chunks % w.batch, oh, first,
                    w.out_width - first < kChunkPixels ? w.out_width - first : kChunkPixels,
                    oh + 1 < w.out_height && at + 1 < range.end);
  }
  release_tiles();
}

}  // namespace
}  // namespace lissome

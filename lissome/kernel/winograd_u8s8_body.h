// The Winograd convolution of bytes in whole numbers, for AVX2: a block of tiles is transformed into 16-bit numbers,
// multiplied point by point for 16 outputs at a time, and these are transformed back and finished.
#pragma once

#include "lissome/kernel/tile_u8s8_body.h"
#include "lissome/kernel/winograd_tiles.h"
#include "lissome/kernel/winograd_u8s8.h"

namespace lissome {
namespace {

constexpr int kPoints = 16;

struct Shorts {  // 16 numbers of 16 bits
  __m256i v;
};
inline Shorts load_bytes_less(const uint8_t* p, Shorts zero) {
  const __m256i wide = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return {_mm256_sub_epi16(wide, zero.v)};
}
inline Shorts operator+(Shorts a, Shorts b) { return {_mm256_add_epi16(a.v, b.v)}; }
inline Shorts operator-(Shorts a, Shorts b) { return {_mm256_sub_epi16(a.v, b.v)}; }
inline Ints operator+(Ints a, Ints b) { return {_mm256_add_epi32(a.v, b.v)}; }
inline Ints operator-(Ints a, Ints b) { return {_mm256_sub_epi32(a.v, b.v)}; }

LISSOME_INLINE void transform_input(const Shorts (&d)[4], Shorts (&t)[4]) {
  t[0] = d[0] - d[2], t[1] = d[1] + d[2], t[2] = d[2] - d[1], t[3] = d[1] - d[3];
}
LISSOME_INLINE void transform_output(const Ints (&m)[4], Ints (&y)[2]) {
  y[0] = m[0] + m[1] + m[2], y[1] = m[1] - m[2] - m[3];
}

// One tile of x -> row `v`[.][channels] of each point.
void load_byte_tile(const WinogradU8S8Call& call, const TileCorner& corner, int16_t* v, int64_t stride) {
  const uint8_t* inputs[4][4];
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) inputs[i][j] = find_input(call, corner, i, j);
  }
  const Shorts zero = {_mm256_set1_epi16(static_cast<int16_t>(call.x_zero))};
  for (int64_t c = 0; c < call.in_channels; c += kWinogradBytes) {
    Shorts half[4][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      Shorts d[4], t[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) d[i] = load_bytes_less(inputs[i][j] + c, zero);
      transform_input(d, t);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) half[i][j] = t[i];
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      Shorts t[4];
      transform_input(half[i], t);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(v + (i * 4 + j) * stride + c), t[j].v);
      }
    }
  }
}

// m[rows][16] = v[rows][inputs] * weight[inputs][16], for one point of the tiles of a block.
struct PointProduct {
  const int16_t *v, *weight;
  int32_t* m;
  int64_t inputs;
};

// sum += pairs of x with pairs of w, in the register of the sum: of 16, tiles leave one free besides (vector_avx2.h).
LISSOME_INLINE void add_pairs(__m256i x, __m256i w, Ints& sum) {
  const __m256i products = _mm256_madd_epi16(x, w);
  asm("vpaddd %1, %0, %0" : "+x"(sum.v) : "x"(products));
}

struct PointTile {
  template <int Rows, int Vectors>
  static void run(const PointProduct& product, TilePlace place, Ahead& ahead) {
    const int16_t* rows[Rows];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) rows[r] = product.v + (place.row + r) * product.inputs;
    Ints sums[Rows][Vectors];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) sums[r][v] = zero_ints();
    }
    const int16_t* weight = product.weight;
    for (int64_t k = 0; k < product.inputs; k += 2, weight += 32) {
      if (ahead.lines > 0) _mm_prefetch(ahead.at, _MM_HINT_T1), ahead.at += 64;
      __m256i w[Vectors];
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) w[v] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weight + 16 * v));
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        const __m256i x = _mm256_castps_si256(_mm256_broadcast_ss(reinterpret_cast<const float*>(rows[r] + k)));
#pragma GCC unroll 2
        for (int v = 0; v < Vectors; ++v) add_pairs(x, w[v], sums[r][v]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) {
        store_ints(product.m + (place.row + r) * kWinogradBytes + v * Floats::kWidth, sums[r][v]);
      }
    }
  }
};

// One tile of 16 outputs: sums -> results.
void store_byte_tile(const WinogradU8S8Call& call, const TileCorner& corner, int64_t output, const int32_t* m,
                     int64_t stride) {
  const Window& w = call.window;
  Ints y[2][2][2];  // row, pixel, register
#pragma GCC unroll 2
  for (int v = 0; v < 2; ++v) {
    Ints half[2][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      Ints column[4], t[2];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) column[i] = load_ints(m + (i * 4 + j) * stride + v * Floats::kWidth);
      transform_output(column, t);
      half[0][j] = t[0], half[1][j] = t[1];
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      Ints t[2];
      transform_output(half[i], t);
      y[i][0][v] = {_mm256_srai_epi32(t[0].v, 2)}, y[i][1][v] = {_mm256_srai_epi32(t[1].v, 2)};
    }
  }
  const int64_t first = (corner.image * w.out_height + corner.top) * w.out_width + corner.left;
  for (int i = 0; i < 2 && corner.top + i < w.out_height; ++i) {
    const TilePlace place = {first + i * w.out_width, output, kWinogradBytes};
    if (corner.left + 1 < w.out_width) {
      store_tile(call, place, y[i]);
    } else {
      Ints one[1][2] = {{y[i][0][0], y[i][0][1]}};
      store_tile(call, place, one);
    }
  }
}

// The products of one point with the tiles of a block, as even as can be; the next point's weights come meanwhile.
LISSOME_INLINE void multiply_point(const PointProduct& product, int64_t count) {
  int64_t tiles = (count + kTileRows - 1) / kTileRows;
  const char* next = reinterpret_cast<const char*>(product.weight + product.inputs * kWinogradBytes);
  for (int64_t row = 0; tiles > 0; --tiles) {
    const int64_t rows = (count - row + tiles - 1) / tiles;
    Ahead ahead = {next, row == 0 ? 1 : 0};
    choose_tile<PointTile, 2, kTileRows>(product, {row, 0, kWinogradBytes}, rows, ahead);
    row += rows;
  }
}

LISSOME_INLINE void run_winograd_u8s8(const WinogradU8S8Call& call, int part, int parts) {
  const TileCounts counts = count_tiles(call.window, 2);
  const int64_t columns = call.out_channels / kWinogradBytes, inputs = call.in_channels;
  Range my_tiles = {0, counts.all()}, my_columns = {0, columns};
  (call.split_outputs ? my_columns : my_tiles) = split_evenly(call.split_outputs ? columns : counts.all(), part, parts);
  const int64_t v_stride = words_stride(call), m_stride = sums_stride(call);
  std::byte* scratch = call.scratch + part * kPoints * (2 * v_stride + 4 * m_stride);
  auto* v = reinterpret_cast<int16_t*>(scratch);
  auto* m = reinterpret_cast<int32_t*>(scratch + 2 * kPoints * v_stride);
  const int64_t all = my_tiles.end - my_tiles.begin, blocks = (all + call.block - 1) / call.block;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t first = my_tiles.begin + all * block / blocks;
    const int64_t count = my_tiles.begin + all * (block + 1) / blocks - first;
    for (int64_t i = 0; i < count; ++i) {
      load_byte_tile(call, find_corner(counts, 2, first + i), v + i * inputs, v_stride);
    }
    for (int64_t column = my_columns.begin; column < my_columns.end; ++column) {
      const int16_t* weight = call.weight + column * kPoints * inputs * kWinogradBytes;
      for (int point = 0; point < kPoints; ++point, weight += inputs * kWinogradBytes) {
        multiply_point({v + point * v_stride, weight, m + point * m_stride, inputs}, count);
      }
      for (int64_t i = 0; i < count; ++i) {
        store_byte_tile(call, find_corner(counts, 2, first + i), column * kWinogradBytes, m + i * kWinogradBytes,
                        m_stride);
      }
    }
  }
}

}  // namespace
}  // namespace lissome

// The heart of the int8 products, over Ints: as tile_f32_body.h, with four inputs to a step and sums in s32 that are
// scaled, activated and perhaps quantized again on the way out.
#pragma once

#include "lissome/kernel/gemm/finish_u8s8_body.h"
#include "lissome/kernel/gemm/split.h"

namespace lissome {
namespace {

// The weights that are multiplied next: fetched meanwhile, `lines` of the cache with each step.
struct Ahead {
  const char* at = nullptr;
  int64_t lines = 0;
};

LISSOME_INLINE int32_t load_four(const uint8_t* p) {
  int32_t four;
  __builtin_memcpy(&four, p, 4);
  return four;
}

// The last one to three inputs: nothing is read beyond them.
LISSOME_INLINE int32_t load_some(const uint8_t* p, int64_t count) {
  uint32_t some = 0;
  for (int64_t i = 0; i < count; ++i) some |= static_cast<uint32_t>(p[i]) << (8 * i);
  return static_cast<int32_t>(some);
}

template <int Rows, int Vectors>
LISSOME_INLINE void add_step(const int32_t (&fours)[Rows], const int8_t* const (&weight)[Vectors], int64_t at,
                             Ints (&sums)[Rows][Vectors]) {
  Weights columns[Vectors];
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; ++v) columns[v] = load_weights(weight[v] + at);
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
    const Inputs x = broadcast_inputs(fours[r]);
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) sums[r][v] = add_products(sums[r][v], x, columns[v]);
  }
}

// `output` is the first of a column of tiles.
template <int Vectors>
LISSOME_INLINE void find_columns(const int8_t* weight, const PanelU8S8& panel, int64_t output,
                                 const int8_t* (&columns)[Vectors]) {
  const int8_t* first = weight + output_offset(panel, output);
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; ++v) {
    if constexpr (Floats::kWidth == 16) {
      columns[v] = first + v / 2 * panel.panel + v % 2 * panel.square;
    } else {
      columns[v] = first + v * Floats::kWidth * 4;
    }
  }
}

// sums += rows[.][0..count) * the weights of a run, `at` bytes from the start of their columns.
template <int Rows, int Vectors>
LISSOME_INLINE void accumulate(const uint8_t* const (&rows)[Rows], const int8_t* const (&columns)[Vectors],
                               const PanelU8S8& panel, int64_t at, int64_t count, Ints (&sums)[Rows][Vectors],
                               Ahead& ahead) {
  int32_t x[Rows];
  int64_t k = 0;
  for (const int64_t whole = count / 4 * 4; k < whole; at += panel.square) {
    const int64_t left = whole - k, end = k + (left < 4 * panel.step_fours ? left : 4 * panel.step_fours);
    for (int64_t i = 0; i < ahead.lines; ++i, ahead.at += 64) _mm_prefetch(ahead.at, _MM_HINT_T1);
    for (; k < end; k += 4, at += 64) {
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) x[r] = load_four(rows[r] + k);
      add_step(x, columns, at, sums);
    }
  }
  if (k == count) return;
  // A step that was not whole goes on.
  if (k % (4 * panel.step_fours) != 0) at -= panel.square;
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) x[r] = load_some(rows[r] + k, count - k);
  add_step(x, columns, at, sums);
}

#include "lissome/kernel/isa/tile_loops_body.h"

}  // namespace
}  // namespace lissome

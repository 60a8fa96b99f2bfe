// The bf16 linear over Floats: a tile of rows and two registers of outputs. With AVX-512 BF16, pairs of products are
// summed by one instruction; else x and weight are widened, which is exact, and multiplied in f32.
#pragma once

#include "lissome/kernel/conv/pixel_map.h"
#include "lissome/kernel/gemm/linear_bf16_rows_body.h"
#ifdef __AVX512BF16__
#include "lissome/kernel/gemm/linear_bf16_row_body.h"
#endif

namespace lissome {
namespace {

constexpr int kBf16TileRows = Floats::kWidth == 16 ? 12 : 6;
constexpr int kBf16Column = 2 * Floats::kWidth;

#ifdef __AVX512BF16__
using StagedItem = uint16_t;
// sums += one pair of inputs of each row times the pair's weights of two registers of outputs.
template <int Rows>
LISSOME_INLINE void add_pair(const uint16_t* const (&rows)[Rows], int64_t k, Words first, Words second,
                             Floats (&sums)[Rows][2]) {
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) {
    int pair;
    __builtin_memcpy(&pair, rows[r] + k, 4);
    const auto value = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
    sums[r][0] = {_mm512_dpbf16_ps(sums[r][0].v, value, reinterpret_cast<__m512bh>(first))};
    sums[r][1] = {_mm512_dpbf16_ps(sums[r][1].v, value, reinterpret_cast<__m512bh>(second))};
  }
}
#else
using StagedItem = float;
template <int Rows>
LISSOME_INLINE void add_pair(const float* const (&rows)[Rows], int64_t k, Words first, Words second,
                             Floats (&sums)[Rows][2]) {
  const Floats even[2] = {even_of(first), even_of(second)}, odd[2] = {odd_of(first), odd_of(second)};
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) {
    const Floats value = fill(rows[r][k]), next = fill(rows[r][k + 1]);
    sums[r][0] = multiply_add(value, even[0], sums[r][0]);
    sums[r][1] = multiply_add(value, even[1], sums[r][1]);
    sums[r][0] = multiply_add(next, odd[0], sums[r][0]);
    sums[r][1] = multiply_add(next, odd[1], sums[r][1]);
  }
}
#endif

// A product of staged rows and packed panels, `steps` of inputs long; `map` says to which rows of y its rows belong.
struct Bf16Product {
  const OutputBf16& output;
  PixelMap map;
  const uint16_t* weight;  // packed
  int64_t outputs, steps;
};

// The panel that is multiplied next: fetched meanwhile, `lines` of the cache with each step.
struct Bf16Ahead {
  const char* at = nullptr;
  int64_t lines = 0;
};

// Out of line, so that tiles stay small.
void finish_tile(const Bf16Product& product, const float* sums, Bf16Place place, int64_t count) {
  int64_t rows[kBf16TileRows];
  find_rows(product.map, place.row, count, rows);
  choose_activation(product.output.epilogue, [&](const auto& activation) {
    for (int64_t r = 0; r < count; ++r) {
      finish_row(product.output, sums + r * kBf16Column, place, rows[r], activation);
    }
  });
}

// `weight` is at the first of the column's outputs.
template <int Rows>
void run_bf16_tile(const Bf16Product& product, StagedRows<StagedItem> x, const uint16_t* weight, Bf16Place place,
                   Bf16Ahead& ahead) {
  constexpr int64_t kSecond = Floats::kWidth == 16 ? 512 : 16;  // from one register's weights to the other's
  const StagedItem* rows[Rows];
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) rows[r] = x.first + r * x.stride;
  Floats sums[Rows][2];
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) sums[r][0] = sums[r][1] = zeros();
  for (int64_t step = 0; step < product.steps; ++step, weight += kBf16Panel * kBf16Step) {
    for (int64_t i = 0; i < ahead.lines; ++i, ahead.at += 64) _mm_prefetch(ahead.at, _MM_HINT_T1);
    for (int64_t k = 0; k < kBf16Step; k += 2) {
      add_pair(rows, step * kBf16Step + k, load_words(weight + k * 16), load_words(weight + k * 16 + kSecond), sums);
    }
  }
  alignas(64) float spill[Rows * kBf16Column];
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) {
    store(spill + r * kBf16Column, sums[r][0]);
    store(spill + r * kBf16Column + Floats::kWidth, sums[r][1]);
  }
  finish_tile(product, spill, place, Rows);
}

// A tile of `place.rows` rows, at most `Rows`.
template <int Rows = kBf16TileRows>
LISSOME_INLINE void choose_bf16_tile(const Bf16Product& product, StagedRows<StagedItem> x, const uint16_t* weight,
                                     Bf16Place place, Bf16Ahead& ahead) {
  if constexpr (Rows > 1) {
    if (place.rows < Rows) return choose_bf16_tile<Rows - 1>(product, x, weight, place, ahead);
  }
  run_bf16_tile<Rows>(product, x, weight, place, ahead);
}

// Rows in tiles as even as can be.
void run_bf16_column(const Bf16Product& product, StagedRows<StagedItem> x, const uint16_t* weight, Bf16Place place,
                     Bf16Ahead& ahead) {
  const int64_t end = place.row + place.rows;
  for (int64_t tiles = (place.rows + kBf16TileRows - 1) / kBf16TileRows; tiles > 0; --tiles) {
    place.rows = (end - place.row + tiles - 1) / tiles;
    choose_bf16_tile(product, x, weight, place, ahead);
    place.row += place.rows, x.first += place.rows * x.stride;
  }
}

// `last`: no panel follows that is worth fetching ahead.
void run_bf16_panel(const Bf16Product& product, StagedRows<StagedItem> x, Range rows, int64_t panel, bool last) {
  const int64_t size = product.steps * kBf16Step * kBf16Panel, count = rows.end - rows.begin;
  const uint16_t* weight = product.weight + panel * size;
  Bf16Ahead ahead;
  if (!last) {
    constexpr int64_t kLines = kBf16Step * kBf16Panel * 2 / 64;  // of a step
    const int64_t visits = (count + kBf16TileRows - 1) / kBf16TileRows * (kBf16Panel / kBf16Column);
    ahead = {reinterpret_cast<const char*>(weight + size), (kLines + visits - 1) / visits};
  }
  for (int64_t n = 0; n < kBf16Panel; n += kBf16Column) {
    const int64_t output = panel * kBf16Panel + n, left = product.outputs - output;
    if (left <= 0) return;
    run_bf16_column(product, x, weight + n / 16 * 512,
                    {rows.begin, output, count, left < kBf16Column ? left : kBf16Column}, ahead);
  }
}

// Panels against rows that are staged.
LISSOME_INLINE void run_bf16_panels(const Bf16Product& product, StagedRows<StagedItem> x, Range rows, Range panels) {
  constexpr int64_t kNearElements = 256 * 1024;  // that may well be found in the second-level cache
  const bool far = (panels.end - panels.begin) * product.steps * kBf16Step * kBf16Panel > kNearElements;
  for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
    run_bf16_panel(product, x, rows, panel, !far || panel + 1 == panels.end);
  }
}

LISSOME_INLINE void run_linear_bf16(const LinearBf16Call& call, int part, int parts) {
#ifdef __AVX512BF16__
  if (call.rows == 1) return run_single_row(call, part, parts);
#endif
  const Bf16Product product = {call, {}, call.weight, call.outputs, count_bf16_steps(call.inputs)};
  const auto multiply = [&](StagedRows<StagedItem> x, Range rows, Range panels) {
    run_bf16_panels(product, x, rows, panels);
  };
  run_share<StagedItem>(call, share_bf16(call, kBf16TileRows, part, parts), part, multiply);
}

}  // namespace
}  // namespace lissome

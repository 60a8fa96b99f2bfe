// The bf16 linear over Floats: a tile of rows and two registers of outputs. With AVX-512 BF16, pairs of products are
// summed by one instruction; else x and weight are widened, which is exact, and multiplied in f32.
#pragma once

#include "lissome/kernel/linear_bf16_rows_body.h"
#include "lissome/kernel/pixel_map.h"
#ifdef __AVX512BF16__
#include "lissome/kernel/linear_bf16_row_body.h"
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
void run_bf16_tile(const Bf16Product& product, StagedRows<StagedItem> x, const uint16_t* weight, Bf16Place place) {
  constexpr int64_t kSecond = Floats::kWidth == 16 ? 512 : 16;  // from one register's weights to the other's
  const StagedItem* rows[Rows];
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) rows[r] = x.first + r * x.stride;
  Floats sums[Rows][2];
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) sums[r][0] = sums[r][1] = zeros();
  for (int64_t step = 0; step < product.steps; ++step, weight += kBf16Panel * kBf16Step) {
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

void run_bf16_column(const Bf16Product& product, StagedRows<StagedItem> x, const uint16_t* weight, Bf16Place place) {
  const auto run = [&]<int Rows>() {
    for (; place.rows >= Rows; place.rows -= Rows, place.row += Rows, x.first += Rows * x.stride) {
      run_bf16_tile<Rows>(product, x, weight, place);
    }
  };
  run.template operator()<kBf16TileRows>();
  if constexpr (kBf16TileRows > 6) run.template operator()<6>();
  run.template operator()<3>();
  run.template operator()<1>();
}

void run_bf16_panel(const Bf16Product& product, StagedRows<StagedItem> x, Range rows, int64_t panel) {
  const uint16_t* weight = product.weight + panel * product.steps * kBf16Step * kBf16Panel;
  for (int64_t n = 0; n < kBf16Panel; n += kBf16Column) {
    const int64_t output = panel * kBf16Panel + n, left = product.outputs - output;
    if (left <= 0) return;
    run_bf16_column(product, x, weight + n / 16 * 512,
                    {rows.begin, output, rows.end - rows.begin, left < kBf16Column ? left : kBf16Column});
  }
}

LISSOME_INLINE void run_linear_bf16(const LinearBf16Call& call, int part, int parts) {
#ifdef __AVX512BF16__
  if (call.rows == 1) return run_single_row(call, part, parts);
#endif
  const Bf16Product product = {call, {}, call.weight, call.outputs, count_bf16_steps(call.inputs)};
  const auto multiply = [&](StagedRows<StagedItem> x, Range rows, int64_t panel) {
    run_bf16_panel(product, x, rows, panel);
  };
  run_share<StagedItem>(call, share_bf16(call, kBf16TileRows, part, parts), part, multiply);
}

}  // namespace
}  // namespace lissome

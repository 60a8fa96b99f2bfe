// The bf16 linear over Floats: a tile of rows and two registers of outputs. With AVX-512 BF16, pairs of products are
// summed by one instruction; else x and weight are widened, which is exact, and multiplied in f32.
#pragma once

#include "lissome/kernel/conv/pixel_map.h"
#include "lissome/kernel/gemm/linear_bf16_rows_body.h"
#include "lissome/kernel/isa/tile_f32_body.h"
#ifdef __AVX512BF16__
#include "lissome/kernel/gemm/linear_bf16_row_body.h"
#endif

namespace lissome {
namespace {

constexpr int kBf16TileRows = Floats::kWidth == 16 ? 12 : 6;
constexpr int kBf16Column = 2 * Floats::kWidth;

// Rows of a tile. A pointer each would need more registers than there are; from one to four rows there is an address.
template <int Rows, typename Item>
struct TileRows {
  static constexpr int kEach = 4;
  const Item* first[(Rows + kEach - 1) / kEach];
  int64_t stride, three;

  LISSOME_INLINE explicit TileRows(StagedRows<Item> x) : stride(x.stride), three(3 * x.stride) {
#pragma GCC unroll 12
    for (int i = 0; i * kEach < Rows; ++i) first[i] = x.first + i * kEach * x.stride;
  }
  LISSOME_INLINE const Item* at(int row) const {
    const Item* from = first[row / kEach];
    return row % kEach == 3 ? from + three : from + row % kEach * stride;
  }
  LISSOME_INLINE void advance(int64_t items) {
#pragma GCC unroll 12
    for (int i = 0; i * kEach < Rows; ++i) first[i] += items;
  }
};

#ifdef __AVX512BF16__
using StagedItem = uint16_t;
constexpr int64_t kInPlace = 2;  // rows of x whose inputs are a multiple of this are read where they lie
// sums += one pair of inputs of each row times the pair's weights.
template <int Rows, int Vectors>
LISSOME_INLINE void add_pair(const TileRows<Rows, uint16_t>& rows, const Words (&weights)[Vectors],
                             Floats (&sums)[Rows][Vectors]) {
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) {
    int pair;
    __builtin_memcpy(&pair, rows.at(r), 4);
    const auto value = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) {
      sums[r][v] = {_mm512_dpbf16_ps(sums[r][v].v, value, reinterpret_cast<__m512bh>(weights[v]))};
    }
  }
}
#else
using StagedItem = float;
constexpr int64_t kInPlace = 1;  // unused: rows are widened
template <int Rows, int Vectors>
LISSOME_INLINE void add_pair(const TileRows<Rows, float>& rows, const Words (&weights)[Vectors],
                             Floats (&sums)[Rows][Vectors]) {
  Floats even[Vectors], odd[Vectors];
#pragma GCC unroll 2
  for (int v = 0; v < Vectors; ++v) even[v] = even_of(weights[v]), odd[v] = odd_of(weights[v]);
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) {
    const Floats value = fill(rows.at(r)[0]), next = fill(rows.at(r)[1]);
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) {
      sums[r][v] = multiply_add(next, odd[v], multiply_add(value, even[v], sums[r][v]));
    }
  }
}
#endif

// A product of staged rows and packed panels, sums `inputs` long; `map` says to which rows of y its rows belong.
struct Bf16Product {
  const OutputBf16& output;
  PixelMap map;
  const uint16_t* weight;  // packed
  int64_t outputs, inputs;
};

// The panel that is multiplied next: fetched meanwhile, `lines` of the cache with each step.
struct Bf16Ahead {
  const char* at = nullptr;
  int64_t lines = 0;
};

// Where rows of y do not follow each other. Out of line, so that tiles stay small.
void finish_mapped(const Bf16Product& product, const float* sums, int64_t stride, Bf16Place place) {
  int64_t rows[kBf16TileRows];
  find_rows(product.map, place.row, place.rows, rows);
  choose_activation(product.output.epilogue, [&](const auto& activation) {
    for (int64_t r = 0; r < place.rows; ++r) {
      finish_row(product.output, sums + r * stride, place, rows[r], activation);
    }
  });
}

template <int Rows, int Vectors>
LISSOME_INLINE void finish_tile(const Bf16Product& product, Bf16Place place, const Floats (&sums)[Rows][Vectors]) {
  if (product.map.pitch == 0) {
    return store_tile(product.output, {product.map.first + place.row, place.output, place.outputs}, sums);
  }
  alignas(64) float spill[Rows * Vectors * Floats::kWidth];
  store_sums(spill, Vectors * Floats::kWidth, sums);
  finish_mapped(product, spill, Vectors * Floats::kWidth, place);
}

template <int Rows, int Vectors>
LISSOME_INLINE void run_bf16_tile(const Bf16Product& product, StagedRows<StagedItem> x, const uint16_t* weight,
                                  Bf16Place place, Bf16Ahead& ahead) {
  constexpr int64_t kSecond = Floats::kWidth == 16 ? 512 : 16;  // from one register's weights to the other's
  TileRows<Rows, StagedItem> rows(x);
  Floats sums[Rows][Vectors];
  clear_sums(sums);
  for (int64_t k = 0; k < product.inputs; weight += kBf16Panel * kBf16Step - kBf16Step * 16) {
    for (int64_t i = 0; i < ahead.lines; ++i, ahead.at += 64) _mm_prefetch(ahead.at, _MM_HINT_T1);
    const int64_t end = k + kBf16Step < product.inputs ? k + kBf16Step : product.inputs;
    for (; k < end; k += 2, weight += 2 * 16) {
      Words weights[Vectors];
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) weights[v] = load_words(weight + v * kSecond);
      add_pair(rows, weights, sums), rows.advance(2);
    }
  }
  finish_tile(product, place, sums);
}

// `tiles` of `Rows` rows; `weight` is at the first of the column's outputs.
template <int Rows, int Vectors>
void run_bf16_tiles(const Bf16Product& product, StagedRows<StagedItem> x, const uint16_t* weight, Bf16Place place,
                    int64_t tiles, Bf16Ahead& ahead) {
  place.rows = Rows;
  for (; tiles > 0; --tiles) {
    run_bf16_tile<Rows, Vectors>(product, x, weight, place, ahead);
    place.row += Rows, x.first += Rows * x.stride;
  }
}

// Of place.rows rows, at most `Rows`.
template <int Vectors, int Rows = kBf16TileRows>
LISSOME_INLINE void choose_bf16_tiles(const Bf16Product& product, StagedRows<StagedItem> x, const uint16_t* weight,
                                      Bf16Place place, int64_t tiles, Bf16Ahead& ahead) {
  if constexpr (Rows > 1) {
    if (place.rows < Rows) return choose_bf16_tiles<Vectors, Rows - 1>(product, x, weight, place, tiles, ahead);
  }
  run_bf16_tiles<Rows, Vectors>(product, x, weight, place, tiles, ahead);
}

template <int Vectors>
void run_bf16_column(const Bf16Product& product, StagedRows<StagedItem> x, const uint16_t* weight, Bf16Place place,
                     Bf16Ahead& ahead) {
  for_even_tiles(place.rows, kBf16TileRows, [&](int64_t count, int64_t tiles) {
    place.rows = count;
    choose_bf16_tiles<Vectors>(product, x, weight, place, tiles, ahead);
    place.row += tiles * count, x.first += tiles * count * x.stride;
  });
}

// `last`: no panel follows that is worth fetching ahead.
void run_bf16_panel(const Bf16Product& product, StagedRows<StagedItem> x, Range rows, int64_t panel, bool last) {
  const int64_t size = count_bf16_steps(product.inputs) * kBf16Step * kBf16Panel, count = rows.end - rows.begin;
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
    const Bf16Place place = {rows.begin, output, count, left < kBf16Column ? left : kBf16Column};
    if (left > Floats::kWidth) {
      run_bf16_column<2>(product, x, weight + n / 16 * 512, place, ahead);
    } else {
      run_bf16_column<1>(product, x, weight + n / 16 * 512, place, ahead);
    }
  }
}

// Panels against rows that are staged.
LISSOME_INLINE void run_bf16_panels(const Bf16Product& product, StagedRows<StagedItem> x, Range rows, Range panels) {
  constexpr int64_t kNearElements = 256 * 1024;  // that may well be found in the second-level cache
  const int64_t size = count_bf16_steps(product.inputs) * kBf16Step * kBf16Panel;
  const bool far = (panels.end - panels.begin) * size > kNearElements;
  for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
    run_bf16_panel(product, x, rows, panel, !far || panel + 1 == panels.end);
  }
}

LISSOME_INLINE void run_linear_bf16(const LinearBf16Call& call, int part, int parts) {
#ifdef __AVX512BF16__
  if (call.rows == 1) return run_single_row(call, part, parts);
#endif
  const Bf16Product product = {call, {}, call.weight, call.outputs, call.inputs};
  const auto multiply = [&](StagedRows<StagedItem> x, Range rows, Range panels) {
    run_bf16_panels(product, x, rows, panels);
  };
  run_share<StagedItem>(call, share_bf16(call, kBf16TileRows, part, parts), kInPlace, part, multiply);
}

}  // namespace
}  // namespace lissome

// The bf16 linear on tile registers: blocks of 32 rows and 32 outputs, four tiles of sums, a step of 32 inputs at a
// time.
#pragma once

#include "lissome/kernel/conv/pixel_map.h"
#include "lissome/kernel/gemm/linear_bf16_row_body.h"
#include "lissome/kernel/gemm/linear_bf16_rows_body.h"
#include "lissome/kernel/isa/tiles_bf16.h"

namespace lissome {
namespace {

constexpr int64_t kSquare = kTileSide * kBf16Step;  // elements of a tile of weights

// Whole rows of a block: with 64 bytes of results each, one line of the cache.
template <typename Function>
LISSOME_INLINE void finish_whole_rows(const OutputBf16& call, const float* sums, const float* bias, int64_t output,
                                      const int64_t* rows, Range range, const Function& activation) {
  // Copies: what is stored might else be these.
  uint16_t* const y = call.y + output;
  const uint16_t* const residuals = call.residual ? call.residual + output : nullptr;
  const int64_t y_stride = call.y_stride, residual_stride = call.residual_stride;
  const ResidualPlace place = call.residual_place;
  const Floats left_bias = load(bias), right_bias = load(bias + 16);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t row = rows[i];
    if (row < 0) continue;
    Floats left = load(sums + i * kBf16Panel) + left_bias, right = load(sums + i * kBf16Panel + 16) + right_bias;
    const uint16_t* residual = residuals ? residuals + row * residual_stride : nullptr;
    if (place == ResidualPlace::before_activation) left = left + load(residual), right = right + load(residual + 16);
    left = activation(left), right = activation(right);
    if (place == ResidualPlace::after_activation) left = left + load(residual), right = right + load(residual + 16);
    _mm512_storeu_si512(y + row * y_stride, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(right.v, left.v)));
  }
}

// A block whose sums are done. Its epilogue runs a few rows at a time between the steps of the next block: the vector
// units have nothing else to do while tiles are multiplied.
template <typename Function>
struct PendingBlock {
  const Function& activation;
  const OutputBf16* output = nullptr;
  const float* sums = nullptr;
  Bf16Place place = {};
  int64_t next = 0;
  int64_t rows[kBlockRows] = {};            // of y; -1: none
  alignas(64) float bias[kBf16Panel] = {};  // of the block's outputs

  LISSOME_INLINE void advance(int64_t count) {
    const Range range = {next, next + count < place.rows ? next + count : place.rows};
    if (range.begin >= range.end) return;
    next = range.end;
    if (place.outputs == kBf16Panel) {
      return finish_whole_rows(*output, sums, bias, place.output, rows, range, activation);
    }
    for (int64_t i = range.begin; i < range.end; ++i) {
      if (rows[i] >= 0) finish_row(*output, sums + i * kBf16Panel, place, rows[i], activation);
    }
  }

  void start(const OutputBf16& to, const PixelMap& map, const float* block, Bf16Place at) {
    output = &to, sums = block, place = at, next = 0;
    find_rows(map, at.row, at.rows, rows);
    if (to.bias == nullptr || at.outputs < kBf16Panel) return;
    store(bias, load(to.bias + at.output)), store(bias + 16, load(to.bias + at.output + 16));
  }
};

// Positions against packed panels. Position 0 of tap t reads x from x + taps[t] on; all taps of a step of inputs come
// before the next step.
struct TileProduct {
  const OutputBf16& output;
  PixelMap map;
  const uint16_t* x;
  int64_t x_stride;  // elements from position to position
  const int64_t* taps;
  int64_t tap_count, tap_steps;  // steps of each tap
  const uint16_t* weight;        // packed
  int64_t outputs, positions;
};

// Where x is read, from tap to tap and step to step.
struct InputCursor {
  const uint16_t* x;
  const int64_t* taps;
  int64_t tap_count, tap = 0;
  LISSOME_INLINE const uint16_t* next() {
    const uint16_t* at = x + taps[tap];
    if (++tap == tap_count) tap = 0, x += kBf16Step;
    return at;
  }
};

// Lines of weights that are wanted soon, a few fetched at each step.
struct WeightsAhead {
  const char *next, *end;
  int64_t lines;  // a step
  LISSOME_INLINE void fetch() {
    for (int64_t i = 0; i < lines && next < end; ++i, next += 64) _mm_prefetch(next, _MM_HINT_T1);
  }
};

struct BlockProduct {
  InputCursor inputs;
  const uint16_t* weight;
  int64_t x_stride, steps;
  WeightsAhead ahead;
};

template <typename Pending>
LISSOME_INLINE void multiply_block(BlockProduct p, float* sums, Pending& pending) {
  const int64_t row_bytes = p.x_stride * 2, pace = kBlockRows / (p.steps + 1) + 1;
  clear_tile<0>(), clear_tile<1>(), clear_tile<2>(), clear_tile<3>();
  for (int64_t step = 0; step < p.steps; ++step, p.weight += 2 * kSquare) {
    const uint16_t* x = p.inputs.next();
    load_tile<4>(x, row_bytes);
    load_tile<6>(p.weight, 64);
    multiply_tiles<0, 4, 6>();
    load_tile<7>(p.weight + kSquare, 64);
    multiply_tiles<1, 4, 7>();
    load_tile<5>(x + kTileSide * p.x_stride, row_bytes);
    multiply_tiles<2, 5, 6>();
    multiply_tiles<3, 5, 7>();
    p.ahead.fetch();
    pending.advance(pace);
  }
  store_tile<0>(sums, 128), store_tile<1>(sums + 16, 128);
  store_tile<2>(sums + 512, 128), store_tile<3>(sums + 528, 128);
}

// At most 16 rows.
template <typename Pending>
LISSOME_INLINE void multiply_half_block(BlockProduct p, float* sums, int64_t rows, Pending& pending) {
  const int64_t row_bytes = p.x_stride * 2, pace = 2 * (kTileSide / (p.steps + 1) + 1);
  clear_tile<0>(), clear_tile<1>(), clear_tile<2>(), clear_tile<3>();
  int64_t step = 0;
  for (; step + 2 <= p.steps; step += 2, p.weight += 4 * kSquare) {
    load_tile<4>(p.inputs.next(), row_bytes);
    load_tile<6>(p.weight, 64);
    multiply_tiles<0, 4, 6>();
    load_tile<7>(p.weight + kSquare, 64);
    multiply_tiles<1, 4, 7>();
    load_tile<5>(p.inputs.next(), row_bytes);
    load_tile<6>(p.weight + 2 * kSquare, 64);
    multiply_tiles<2, 5, 6>();
    load_tile<7>(p.weight + 3 * kSquare, 64);
    multiply_tiles<3, 5, 7>();
    p.ahead.fetch();
    p.ahead.fetch();
    pending.advance(pace);
  }
  if (step < p.steps) {
    load_tile<4>(p.inputs.next(), row_bytes);
    load_tile<6>(p.weight, 64);
    multiply_tiles<0, 4, 6>();
    load_tile<7>(p.weight + kSquare, 64);
    multiply_tiles<1, 4, 7>();
  }
  store_tile<0>(sums, 128), store_tile<1>(sums + 16, 128);
  store_tile<2>(sums + 512, 128), store_tile<3>(sums + 528, 128);
  for (int64_t i = 0; i < rows * kBf16Panel; i += Floats::kWidth)
    store(sums + i, load(sums + i) + load(sums + 512 + i));
}

// Runs products one after the other, the epilogue of each block beside the next one's steps.
template <typename Function>
class TileRunner {
 public:
  explicit TileRunner(const Function& activation) : pending_{activation} {}
  ~TileRunner() { release_tiles(); }

  // `product.output` must live until drain().
  __attribute__((noinline)) void run(const TileProduct& product, Range panels) {
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      run_panel(product, panel, panel + 1 < panels.end);
    }
  }
  void drain() { pending_.advance(kBlockRows); }

 private:
  void run_panel(const TileProduct& p, int64_t panel, bool more) {
    const int64_t output = panel * kBf16Panel, left = p.outputs - output, steps = p.tap_count * p.tap_steps;
    const uint16_t* weight = p.weight + panel * steps * 2 * kSquare;
    const int64_t blocks = (p.positions + kBlockRows - 1) / kBlockRows;
    // The next panel's weights come from afar while this one's are used.
    const char* next = reinterpret_cast<const char*>(weight + steps * 2 * kSquare);
    const int64_t panel_bytes = more ? steps * 4 * kSquare : 0, lines = (4 * kSquare / 64 + blocks - 1) / blocks;
    for (int64_t block = 0; block < blocks; ++block, turn_ = 1 - turn_) {
      const int64_t row = block * kBlockRows;
      const int64_t count = p.positions - row < kBlockRows ? p.positions - row : kBlockRows;
      const BlockProduct product = {
          {p.x + row * p.x_stride, p.taps, p.tap_count},
          weight,
          p.x_stride,
          steps,
          {next + panel_bytes * block / blocks, next + panel_bytes * (block + 1) / blocks, lines}};
      if (count != shaped_) shape_block_tiles(shaped_ = count, kBf16Step / 2);
      if (count > kTileSide) {
        multiply_block(product, sums_[turn_], pending_);
      } else {
        multiply_half_block(product, sums_[turn_], count, pending_);
      }
      pending_.advance(kBlockRows);
      pending_.start(p.output, p.map, sums_[turn_], {row, output, count, left < kBf16Panel ? left : kBf16Panel});
    }
  }

  alignas(64) float sums_[2][kBlockRows * kBf16Panel];
  PendingBlock<Function> pending_;
  int turn_ = 0;
  int64_t shaped_ = 0;  // rows of a block that the tiles are shaped for
};

LISSOME_INLINE void run_linear_bf16(const LinearBf16Call& call, int part, int parts) {
  if (call.rows == 1) return run_single_row(call, part, parts);
  choose_activation(call.epilogue, [&](const auto& activation) {
    TileRunner runner(activation);
    const Bf16Share share = share_bf16(call, kBlockRows, part, parts);
    const int64_t chunk = choose_bf16_chunk(call.inputs), tap = 0;
    auto* scratch = reinterpret_cast<uint16_t*>(call.scratch + part * linear_bf16_scratch(call.rows, call.inputs));
    for (int64_t row = share.rows.begin; row < share.rows.end; row += chunk) {
      const Range rows = {row, row + chunk < share.rows.end ? row + chunk : share.rows.end};
      const StagedRows<uint16_t> x = stage_rows(call, rows, kBf16Step, scratch);
      runner.run({call,
                  {.first = row},
                  x.first,
                  x.stride,
                  &tap,
                  1,
                  count_bf16_steps(call.inputs),
                  call.weight,
                  call.outputs,
                  rows.end - rows.begin},
                 share.panels);
    }
    runner.drain();
  });
}

}  // namespace
}  // namespace lissome

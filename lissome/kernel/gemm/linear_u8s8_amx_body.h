// The int8 linear and convolution on tile registers: blocks of 32 rows and 32 outputs, four tiles of sums, up to 64
// inputs a step. A convolution is a product over the rows of an image band (image_band.h). What tiles would not be
// faster for goes to the version without them.
#pragma once

#include "lissome/kernel/conv/image_band_body.h"
#include "lissome/kernel/gemm/finish_u8s8_amx_body.h"
#include "lissome/kernel/gemm/runs_u8s8.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/tiles_u8s8.h"
#include "lissome/kernel/peak/peak_int8_amx_body.h"

namespace lissome {

void linear_u8s8_avx512_vnni(const LinearU8S8Call& call, int part, int parts);
void conv_u8s8_avx512_vnni(const ConvU8S8Call& call, int part, int parts);

namespace {

constexpr int64_t kMostSteps = 500;           // a sum of that many has parts of s16 in PanelNumbers
constexpr int64_t kRowBytes = 512 * 1024;     // of x, per sweep over the panels
constexpr int64_t kSmallWeight = 128 * 1024;  // that each core may well read whole
constexpr int64_t kGroupBytes = 37 * 1024;    // of weights that are used in turns, row by row
constexpr int64_t kMostPanels = 4;
constexpr int64_t kMostLines = 32;               // fetched ahead in a step, which reads 64
constexpr int64_t kFewRows = 4;                  // that leave a tile too empty
constexpr int64_t kMostBand = int64_t{1} << 30;  // bytes: offsets are s32

// Rows of x and the weights of a panel. `offsets` say where each step's inputs lie from a row's first byte on; the last
// inputs of a row may lie in `tail` instead, [32][64], so that nothing is read behind x.
struct BlockSource {
  const uint8_t* x;
  int64_t stride;
  const int32_t* offsets;
  int64_t steps;  // without the tail
  const uint8_t* tail;
  const int8_t* weight;
  int64_t square;
  const int8_t* ahead;  // weights that are wanted next, fetched from far meanwhile
  int64_t ahead_lines;  // a step
};

LISSOME_INLINE void fetch_ahead(const BlockSource& s, int64_t step) {
  const int8_t* from = s.ahead + step * s.ahead_lines * 64;
  for (int64_t i = 0; i < s.ahead_lines; ++i) __builtin_prefetch(from + i * 64, 0, 2);
}

// Finishes the block before, some rows after every second step, so that it is done when the next one is.
class FinishingRows {
 public:
  FinishingRows(const PendingBlock& block, int64_t steps) : block_(block), count_(block.count) {
    const int64_t turns = steps / 2 > 0 ? steps / 2 : 1;
    pace_ = (kBlockRows + turns - 1) / turns;
  }
  LISSOME_INLINE void advance() { advance_to(next_ + pace_ < count_ ? next_ + pace_ : count_); }
  LISSOME_INLINE void finish() { advance_to(count_); }

 private:
  LISSOME_INLINE void advance_to(int64_t end) {
    if (next_ < end) block_.finish(block_, next_, end);
    next_ = end;
  }

  const PendingBlock& block_;
  const int64_t count_;
  int64_t next_ = 0, pace_;
};

void multiply_block(const BlockSource& s, int32_t* sums, const PendingBlock& before) {
  FinishingRows pending(before, s.steps);
  const int8_t* weight = s.weight;
  clear_tile<0>(), clear_tile<1>(), clear_tile<2>(), clear_tile<3>();
  const auto multiply = [&](const uint8_t* x, int64_t stride) {
    load_tile<4>(x, stride);
    load_tile<6>(weight, 64);
    multiply_byte_tiles<0, 4, 6>();
    load_tile<7>(weight + s.square, 64);
    multiply_byte_tiles<1, 4, 7>();
    load_tile<5>(x + kTileSide * stride, stride);
    multiply_byte_tiles<2, 5, 6>();
    multiply_byte_tiles<3, 5, 7>();
    weight += 2 * s.square;
  };
  for (int64_t step = 0; step < s.steps; ++step) {
    multiply(s.x + s.offsets[step], s.stride);
    fetch_ahead(s, step);
    if (step % 2 == 1) pending.advance();
  }
  if (s.tail != nullptr) multiply(s.tail, 64);
  store_tile<0>(sums, 128), store_tile<1>(sums + 16, 128);
  store_tile<2>(sums + 512, 128), store_tile<3>(sums + 528, 128);
  pending.finish();
}

// At most 16 rows.
void multiply_half_block(const BlockSource& s, int32_t* sums, int64_t rows, const PendingBlock& before) {
  FinishingRows pending(before, s.steps);
  const int8_t* weight = s.weight;
  clear_tile<0>(), clear_tile<1>(), clear_tile<2>(), clear_tile<3>();
  const auto multiply_even = [&](const uint8_t* x, int64_t stride) {
    load_tile<4>(x, stride);
    load_tile<6>(weight, 64);
    multiply_byte_tiles<0, 4, 6>();
    load_tile<7>(weight + s.square, 64);
    multiply_byte_tiles<1, 4, 7>();
    weight += 2 * s.square;
  };
  int64_t step = 0;
  for (; step + 2 <= s.steps; step += 2) {
    multiply_even(s.x + s.offsets[step], s.stride);
    load_tile<5>(s.x + s.offsets[step + 1], s.stride);
    load_tile<6>(weight, 64);
    multiply_byte_tiles<2, 5, 6>();
    load_tile<7>(weight + s.square, 64);
    multiply_byte_tiles<3, 5, 7>();
    weight += 2 * s.square;
    pending.advance();
  }
  if (step < s.steps) multiply_even(s.x + s.offsets[step], s.stride);
  if (s.tail != nullptr) multiply_even(s.tail, 64);
  store_tile<0>(sums, 128), store_tile<1>(sums + 16, 128);
  store_tile<2>(sums + 512, 128), store_tile<3>(sums + 528, 128);
  for (int64_t i = 0; i < rows * kU8S8Panel; i += 16) {
    _mm512_store_si512(sums + i, _mm512_add_epi32(_mm512_load_si512(sums + i), _mm512_load_si512(sums + 512 + i)));
  }
  pending.finish();
}

// The blocks of one part, one after the other.
class BlockRunner {
 public:
  BlockRunner(const OutputU8S8& output, int64_t outputs, const PanelU8S8& panel)
      : output_(output),
        panel_(panel),
        pending_{output, choose_finish(output, outputs, panel.runs * panel.steps * panel.step_fours * 4)} {}
  ~BlockRunner() {
    finish_pending();
    release_tiles();
  }
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  // So that the rows of its places are free again.
  LISSOME_INLINE void finish_pending() {
    if (pending_.count > 0) pending_.finish(pending_, 0, pending_.count);
    pending_.count = 0;
  }
  // Of the panels that the following blocks are for, kMostPanels at most.
  LISSOME_INLINE void enter_panels(Range panels, int64_t outputs) {
    which_ = 1 - which_;
    for (int64_t p = panels.begin; p < panels.end; ++p) {
      const int64_t output = p * kU8S8Panel, left = outputs - output;
      read_panel(output_, output, left < kU8S8Panel ? left : kU8S8Panel, numbers_[which_][p - panels.begin]);
    }
  }
  // `panel` counts from the first that was entered. `places` must last until the next block has run.
  LISSOME_INLINE void run(const BlockSource& source, int64_t rows, const BlockRows& places, int64_t panel) {
    if (rows != shaped_) shape_block_tiles(shaped_ = rows, panel_.step_fours);
    int32_t* sums = sums_[turn_];
    turn_ = 1 - turn_;
    if (rows > kTileSide) {
      multiply_block(source, sums, pending_);
    } else {
      multiply_half_block(source, sums, rows, pending_);
    }
    pending_.panel = &numbers_[which_][panel], pending_.sums = sums, pending_.rows = &places, pending_.count = rows;
  }

 private:
  const OutputU8S8& output_;
  const PanelU8S8 panel_;
  PendingBlock pending_;
  int64_t shaped_ = 0;  // rows of a block that the tiles are shaped for
  int which_ = 0, turn_ = 0;
  PanelNumbers numbers_[2][kMostPanels];
  alignas(64) int32_t sums_[2][kBlockRows * kU8S8Panel];
};

// What the blocks of a group fetch for the next group, each its share.
struct FetchPlan {
  const int8_t* next = nullptr;
  int64_t lines = 0;  // a step of a block
};

LISSOME_INLINE FetchPlan plan_fetches(const int8_t* weight, const PanelU8S8& panel, Range group, int64_t last,
                                      int64_t steps, int64_t blocks) {
  const int64_t count = group.end - group.begin, more = last - group.end;
  const int64_t bytes = (more < count ? more : count) * panel.panel, turns = steps * blocks * count * 64;
  const int64_t lines = turns == 0 ? 0 : (bytes + turns - 1) / turns;
  return {weight + group.end * panel.panel, lines < kMostLines ? lines : kMostLines};
}

// Calls `run` with panels whose weights stay in the first level of cache while rows go by.
template <typename Function>
LISSOME_INLINE void group_panels(Range panels, const PanelU8S8& panel, const Function& run) {
  int64_t most = kGroupBytes / panel.panel;
  most = most < 1 ? 1 : most > kMostPanels ? kMostPanels : most;
  for (int64_t p = panels.begin; p < panels.end; p += most) {
    run(Range{p, p + most < panels.end ? p + most : panels.end});
  }
}

// Panels and rows of a part: whichever side leaves the parts more even. Panels when both do, so that each core keeps
// its own weights, unless those are few.
struct ShareU8S8 {
  Range panels, rows;
};
LISSOME_INLINE ShareU8S8 share_u8s8(int64_t panels, int64_t rows, int64_t unit, bool by_rows, int part, int parts) {
  const int64_t blocks = (rows + unit - 1) / unit;
  const int64_t worst_panels = (panels + parts - 1) / parts * blocks;
  const int64_t worst_blocks = (blocks + parts - 1) / parts * panels;
  const bool panels_split = by_rows ? worst_panels < worst_blocks : worst_panels <= worst_blocks;
  if (panels_split) return {split_evenly(panels, part, parts), {0, rows}};
  return {{0, panels}, split_by_unit(rows, unit, part, parts)};
}

void run_linear_blocks(const LinearU8S8Call& call, int part, int parts) {
  const PanelU8S8 panel = measure_panel(call.inputs, {});
  const int64_t step_bytes = 4 * panel.step_fours, whole = call.inputs / step_bytes;
  const int64_t rest = call.inputs - whole * step_bytes;
  int32_t offsets[kMostSteps];
  for (int64_t i = 0; i < whole; ++i) offsets[i] = static_cast<int32_t>(i * step_bytes);
  const ShareU8S8 share =
      share_u8s8((call.outputs + kU8S8Panel - 1) / kU8S8Panel, call.rows, kBlockRows, false, part, parts);
  alignas(64) uint8_t tail[kBlockRows * 64] = {};
  BlockRows places[2];
  for (BlockRows& rows : places) {
    for (int32_t i = 0; i < kBlockRows; ++i) rows.row[i] = i;
  }
  int turn = 0;
  BlockRunner runner(call, call.outputs, panel);
  int64_t chunk = kRowBytes / call.inputs / kBlockRows * kBlockRows;
  if (chunk < kBlockRows) chunk = kBlockRows;
  for (int64_t first = share.rows.begin; first < share.rows.end; first += chunk) {
    const int64_t end = first + chunk < share.rows.end ? first + chunk : share.rows.end;
    group_panels(share.panels, panel, [&](Range panels) {
      runner.enter_panels(panels, call.outputs);
      FetchPlan fetch = plan_fetches(call.weight, panel, panels, share.panels.end, whole,
                                     (end - first + kBlockRows - 1) / kBlockRows);
      for (int64_t row = first; row < end; row += kBlockRows) {
        const int64_t count = end - row < kBlockRows ? end - row : kBlockRows;
        const uint8_t* x = call.x + row * call.x_stride;
        for (int64_t r = 0; rest > 0 && r < count; ++r) {
          __builtin_memcpy(tail + r * 64, x + r * call.x_stride + whole * step_bytes, static_cast<size_t>(rest));
        }
        turn = 1 - turn;
        places[turn].first = spread_row(call.spread, row);
        for (int64_t i = 0; call.spread.width != 0 && i < count; ++i) {
          places[turn].row[i] = static_cast<int32_t>(spread_row(call.spread, row + i) - places[turn].first);
        }
        for (int64_t p = panels.begin; p < panels.end; ++p) {
          runner.run({x, call.x_stride, offsets, whole, rest > 0 ? tail : nullptr, call.weight + p * panel.panel,
                      panel.square, fetch.next, fetch.lines},
                     count, places[turn], p - panels.begin);
          fetch.next += whole * fetch.lines * 64;
        }
      }
    });
  }
}

LISSOME_INLINE void run_linear_u8s8(const LinearU8S8Call& call, int part, int parts) {
  if (call.rows <= kFewRows || measure_panel(call.inputs, {}).steps > kMostSteps) {
    return linear_u8s8_avx512_vnni(call, part, parts);
  }
  run_linear_blocks(call, part, parts);
}

// Where each step of a window reads, from the corner of the window on.
LISSOME_INLINE int64_t list_offsets(const Window& w, const ImageBand& band, const PanelU8S8& panel, int64_t out_rows,
                                    int32_t* offsets) {
  const int64_t columns = panel.runs / w.kernel_height;
  int64_t count = 0;
  for (int64_t run = 0; run < panel.runs; ++run) {
    const int64_t start = tap_offset(w, band, out_rows, run / columns, run % columns);
    for (int64_t step = 0; step < panel.steps; ++step) {
      offsets[count++] = static_cast<int32_t>(start + step * panel.step_fours * 4);
    }
  }
  return count;
}

// Of the block that begins with number `number` of a band whose first row of outputs is `row`.
void place_block(const Window& w, const ImageBand& band, int64_t row, int64_t number, int64_t count,
                 BlockRows& places) {
  int64_t column = number % band.row_outputs, next = 0;
  places.first = (row + number / band.row_outputs) * w.out_width + (column < w.out_width ? column : w.out_width);
  for (int64_t i = 0; i < count; ++i) {
    places.row[i] = static_cast<int32_t>(column < w.out_width ? next++ : -1);
    if (++column == band.row_outputs) column = 0;
  }
}

void run_conv_blocks(const ConvU8S8Call& call, int part, int parts) {
  const Window& w = call.window;
  const PanelU8S8 panel = measure_panel(call.in_channels, choose_runs(w, 1));
  const ImageBand band = measure_band(w, call.in_channels);
  const int64_t panels = (call.out_channels + kU8S8Panel - 1) / kU8S8Panel;
  const ShareU8S8 share =
      share_u8s8(panels, w.batch * w.out_height, 1, panels * panel.panel <= kSmallWeight, part, parts);
  auto* scratch = reinterpret_cast<uint8_t*>(call.scratch + part * band_scratch(w, call.in_channels));
  int32_t offsets[kMostSteps];
  BlockRows places[2];
  int turn = 0;
  BlockRunner runner(call, call.out_channels, panel);
  for (int64_t row = share.rows.begin, count = 0; row < share.rows.end; row += count) {
    const int64_t first = row % w.out_height, left = share.rows.end - row;
    count = w.out_height - first < band.out_rows ? w.out_height - first : band.out_rows;
    count = left < count ? left : count;
    copy_band(call, band, call.x + row / w.out_height * w.height * w.width * call.in_channels, first, count, scratch);
    const int64_t steps = list_offsets(w, band, panel, count, offsets);
    const int64_t numbers = (count - 1) * band.row_outputs + w.out_width, stride = w.stride_width * band.pixel;
    group_panels(share.panels, panel, [&](Range panels) {
      runner.enter_panels(panels, call.out_channels);
      FetchPlan fetch =
          plan_fetches(call.weight, panel, panels, share.panels.end, steps, (numbers + kBlockRows - 1) / kBlockRows);
      for (int64_t number = 0; number < numbers; number += kBlockRows) {
        const int64_t rows = numbers - number < kBlockRows ? numbers - number : kBlockRows;
        turn = 1 - turn;
        place_block(w, band, row, number, rows, places[turn]);
        for (int64_t p = panels.begin; p < panels.end; ++p) {
          runner.run({scratch + number * stride, stride, offsets, steps, nullptr, call.weight + p * panel.panel,
                      panel.square, fetch.next, fetch.lines},
                     rows, places[turn], p - panels.begin);
          fetch.next += steps * fetch.lines * 64;
        }
      }
    });
  }
}

bool suits_tiles(const ConvU8S8Call& call) {
  if (call.groups != 1) return false;
  const PanelU8S8 panel = measure_panel(call.in_channels, choose_runs(call.window, 1));
  return panel.runs * panel.steps <= kMostSteps && band_scratch(call.window, call.in_channels) <= kMostBand;
}

LISSOME_INLINE void run_conv_u8s8(const ConvU8S8Call& call, int part, int parts) {
  if (!suits_tiles(call)) return conv_u8s8_avx512_vnni(call, part, parts);
  if (!is_linear(call)) return run_conv_blocks(call, part, parts);
  run_linear_blocks(describe_linear(call), part, parts);
}

}  // namespace
}  // namespace lissome

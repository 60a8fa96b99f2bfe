// The f32 linear and convolution on tile registers, by bf16 pieces (bf16x3_amx.h): 32 rows and 32 outputs at a time.
// While tiles are multiplied, the vector units cut the weights that come next and finish the sums that are done.
#pragma once

#include "lissome/kernel/conv/conv_f32.h"
#include "lissome/kernel/gemm/linear_f32.h"
#include "lissome/kernel/isa/bf16x3_amx.h"
#include "lissome/kernel/isa/tile_f32_body.h"
#include "lissome/kernel/isa/tiles_bf16.h"

namespace lissome {

// For what tiles would not be faster for.
void linear_f32_avx512(const LinearF32Call& call, int part, int parts);
void conv_f32_avx512(const ConvF32Call& call, int part, int parts);

namespace {

// Cuts 32 numbers, in order or row by row, and notes whether they are finite: an infinity has none.
struct Cutter {
  Floats finite = zeros();  // NaN once something was not

  // Piece `i` of a and b is store(i, a's high halves below b's); a and b are used up.
  template <typename Store>
  LISSOME_INLINE void cut(__m512i a, __m512i b, const Store& store_piece) {
    const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000));
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i) {
      store_piece(i, a, b);
      if (i == 2) break;
      a = remove(a, _mm512_and_si512(a, high)), b = remove(b, _mm512_and_si512(b, high));
    }
  }
  static LISSOME_INLINE __m512i remove(__m512i from, __m512i part) {
    return _mm512_castps_si512(_mm512_sub_ps(_mm512_castsi512_ps(from), _mm512_castsi512_ps(part)));
  }
  LISSOME_INLINE void check(Floats x) { finite = multiply_add(x, zeros(), finite); }
  LISSOME_INLINE bool is_finite() const { return _mm512_cmp_ps_mask(finite.v, finite.v, _CMP_UNORD_Q) == 0; }
};

// `count` numbers of x -> the three planes, filled with zeros up to a whole step.
LISSOME_INLINE void cut_row(Cutter& cutter, const float* x, int64_t count, uint16_t* to, int64_t plane) {
  const __m512i odd =
      _mm512_add_epi16(_mm512_set1_epi16(1),
                       _mm512_slli_epi16(_mm512_set_epi16(31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17,
                                                          16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                                         1));
  for (int64_t k = 0; k < count; k += kStepInputs) {
    const int64_t left = count - k;
    const Floats a = left >= 16 ? load(x + k) : load_first(x + k, left);
    const Floats b = left >= 32 ? load(x + k + 16) : left > 16 ? load_first(x + k + 16, left - 16) : zeros();
    cutter.check(a), cutter.check(b);
    cutter.cut(_mm512_castps_si512(a.v), _mm512_castps_si512(b.v), [&](int i, __m512i low, __m512i high) {
      _mm512_storeu_si512(to + i * plane + k, _mm512_permutex2var_epi16(low, odd, high));
    });
  }
}

// The place of a tile of weights among those of a job: [step][half of the panel][piece][16 outputs each].
LISSOME_INLINE int64_t find_weight_tile(int64_t step, int64_t half, int64_t piece) {
  return ((step * 2 + half) * kBf16Pieces + piece) * 2 * kTileItems;
}

LISSOME_INLINE void clear_bf16x3(uint16_t* to, int64_t plane, int64_t count) {
  for (int64_t piece = 0; piece < kBf16Pieces; ++piece) {
    for (int64_t k = 0; k < count; k += kStepInputs)
      _mm512_storeu_si512(to + piece * plane + k, _mm512_setzero_si512());
  }
}

// The weights of some steps of a panel: rows of 64 outputs each, a step's `counts` real.
struct JobWeights {
  const float* rows[kJobSteps];
  int64_t counts[kJobSteps];
  int64_t offsets[kJobSteps];  // of x, from the row's beginning
  int64_t steps = 0;
};

// Cuts the weights of a job, a pair of rows at a time: tiles of [pair][output][2].
struct WeightCutter {
  JobWeights job;
  uint16_t* to = nullptr;
  int64_t done = 0, slots = 1, slot = 0;

  int64_t pairs() const { return job.steps * kTileSide; }
  void start(const JobWeights& next, uint16_t* tiles, int64_t turns) {
    job = next, to = tiles, done = slot = 0, slots = turns > 0 ? turns : 1;
  }
  void finish() { cut_pairs(pairs()); }
  LISSOME_INLINE void advance() {
    ++slot;
    if (done < pairs()) cut_pairs(pairs() * slot / slots);
  }

  void cut_pairs(int64_t end) {
    constexpr int64_t kFetchRows = 32;
    Cutter cutter;
    if (end > pairs()) end = pairs();
    for (; done < end; ++done) {
      const int64_t step = done / kTileSide, pair = done % kTileSide, left = job.counts[step] - 2 * pair;
      const float* row = job.rows[step] + 2 * pair * kLinearPanel;
      uint16_t* tile = to + find_weight_tile(step, 0, 0) + pair * kStepInputs;
#pragma GCC unroll 4
      for (int c = 0; c < 4; ++c) {
        for (int next = 0; next < 2; ++next)
          _mm_prefetch(reinterpret_cast<const char*>(row + (kFetchRows + next) * kLinearPanel + c * 16), _MM_HINT_T0);
        const Floats a = left > 0 ? load(row + c * 16) : zeros();
        const Floats b = left > 1 ? load(row + kLinearPanel + c * 16) : zeros();
        cutter.cut(_mm512_castps_si512(a.v), _mm512_castps_si512(b.v), [&](int i, __m512i low, __m512i high) {
          _mm512_storeu_si512(tile + find_weight_tile(0, c / 2, i) + c % 2 * kTileItems,
                              _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(low, 16), high));
        });
      }
    }
  }
};

// Which results the rows of a share become: `width` of each `pitch` are real.
struct RowMap {
  int64_t first, width, pitch;
};

// Sums that are done, and become results a row at a time.
struct PendingRows {
  const OutputF32& output;
  RowMap map;
  float* sums = nullptr;
  int64_t left = 0, row = 0, column = 0;  // rows to come, and the place of the next
  int64_t output_place = 0, outputs = 0;

  void start(float* block, int64_t at, int64_t rows) {
    sums = block, left = rows, row = map.first + at / map.pitch * map.width, column = at % map.pitch;
  }
  LISSOME_INLINE void advance() {
    constexpr int64_t kRowsAtOnce = 3;
    if (left > 0) finish(left < kRowsAtOnce ? left : kRowsAtOnce);
  }
  void flush() {
    if (left > 0) finish(left);
  }
  void finish(int64_t count) {
    for (left -= count; count > 0;) {
      const int64_t run = count < map.pitch - column ? count : map.pitch - column, real = map.width - column;
      if (real > 0)
        finish_rows(output, sums, kLinearPanel, run < real ? run : real, {row + column, output_place, outputs});
      sums += run * kLinearPanel, count -= run, column += run;
      if (column == map.pitch) column = 0, row += map.width;
    }
  }
};

// What a part multiplies: rows of pieces with the panels of a range.
struct Bf16x3Share {
  const uint16_t* x;
  int64_t stride, plane, rows;
  RowMap map;
  const float* weight;  // all panels
  int64_t inputs, taps, outputs;
  const int64_t* tap_offsets;
  Range panels;
  uint16_t* tiles;  // two jobs of weights
  float* sums;
};

LISSOME_INLINE JobWeights describe_job(const Bf16x3Share& share, int64_t panel, Range steps) {
  const int64_t steps_of_tap = (share.inputs + kStepInputs - 1) / kStepInputs;
  const float* weight = share.weight + panel * kLinearPanel * share.inputs * share.taps;
  JobWeights job;
  for (int64_t s = steps.begin; s < steps.end; ++s, ++job.steps) {
    const int64_t tap = s / steps_of_tap, channel = s % steps_of_tap * kStepInputs;
    job.rows[job.steps] = weight + (tap * share.inputs + channel) * kLinearPanel;
    job.counts[job.steps] = share.inputs - channel;
    job.offsets[job.steps] = share.tap_offsets[tap] + channel;
  }
  return job;
}

LISSOME_INLINE void load_rows(const uint16_t* x, const Bf16x3Share& share) {
  load_tile<4>(x, share.stride * 2), load_tile<5>(x + kTileSide * share.stride, share.stride * 2);
}
LISSOME_INLINE void load_columns(const uint16_t* tiles) {
  load_tile<6>(tiles, 64), load_tile<7>(tiles + kTileItems, 64);
}
LISSOME_INLINE void multiply_four() {
  multiply_tiles<0, 4, 6>(), multiply_tiles<2, 5, 6>(), multiply_tiles<1, 4, 7>(), multiply_tiles<3, 5, 7>();
}

// 32 rows and half a panel, for the steps of a job. From one product of pieces to the next only x or the weights
// change.
void multiply_rows(const Bf16x3Share& share, const uint16_t* x, const JobWeights& job, const uint16_t* tiles,
                   WeightCutter& cutter, PendingRows& pending) {
  const auto work_aside = [&] { cutter.advance(), pending.advance(); };
  for (int64_t step = 0; step < job.steps; ++step, tiles += find_weight_tile(1, 0, 0)) {
    const uint16_t* rows = x + job.offsets[step];
    load_rows(rows + share.plane, share), load_columns(tiles + 2 * kTileItems), multiply_four();
    load_columns(tiles), multiply_four();
    work_aside();
    load_rows(rows + 2 * share.plane, share), multiply_four();
    load_rows(rows, share), multiply_four();
    work_aside();
    load_columns(tiles + 2 * kTileItems), multiply_four();
    load_columns(tiles + 4 * kTileItems), multiply_four();
    work_aside();
  }
}

LISSOME_INLINE void store_sum_tiles(float* sums) {
  constexpr int64_t kBytes = kLinearPanel * 4, kLower = kTileSide * kLinearPanel;
  store_tile<0>(sums, kBytes), store_tile<1>(sums + 16, kBytes);
  store_tile<2>(sums + kLower, kBytes), store_tile<3>(sums + kLower + 16, kBytes);
}
LISSOME_INLINE void load_sum_tiles(const float* sums) {
  constexpr int64_t kBytes = kLinearPanel * 4, kLower = kTileSide * kLinearPanel;
  load_tile<0>(sums, kBytes), load_tile<1>(sums + 16, kBytes);
  load_tile<2>(sums + kLower, kBytes), load_tile<3>(sums + kLower + 16, kBytes);
}

void multiply_share(const OutputF32& output, const Bf16x3Share& share) {
  const int64_t steps = share.taps * ((share.inputs + kStepInputs - 1) / kStepInputs);
  const int64_t jobs = (steps + kJobSteps - 1) / kJobSteps, blocks = (share.rows + kBlockRows - 1) / kBlockRows;
  const int64_t all = jobs * (share.panels.end - share.panels.begin);
  const auto describe = [&](int64_t at) {
    return describe_job(share, share.panels.begin + at / jobs,
                        {steps * (at % jobs) / jobs, steps * (at % jobs + 1) / jobs});
  };
  PendingRows pending{output, share.map};
  WeightCutter cutter;
  cutter.start(describe(0), share.tiles, 1);
  cutter.finish();
  for (int64_t at = 0; at < all; ++at) {
    const JobWeights job = cutter.job;
    const uint16_t* tiles = cutter.to;
    const int64_t panel_output = (share.panels.begin + at / jobs) * kLinearPanel;
    const int64_t left = share.outputs - panel_output, halves = left > kLinearPanel / 2 ? 2 : 1;
    const bool first = at % jobs == 0, last = at % jobs + 1 == jobs;
    if (at + 1 < all) {
      cutter.start(describe(at + 1), share.tiles + (at + 1) % 2 * kJobItems, 3 * job.steps * blocks * halves);
    }
    for (int64_t half = 0; half < halves; ++half) {
      const int64_t place = panel_output + half * kLinearPanel / 2, outputs = share.outputs - place;
      for (int64_t block = 0; block < blocks; ++block) {
        const int64_t row = block * kBlockRows, rows = share.rows - row;
        float* sums = share.sums + row * kLinearPanel + half * kLinearPanel / 2;
        if (first) {
          clear_tile<0>(), clear_tile<1>(), clear_tile<2>(), clear_tile<3>();
        } else {
          load_sum_tiles(sums);
        }
        multiply_rows(share, share.x + row * share.stride, job, tiles + find_weight_tile(0, half, 0), cutter, pending);
        pending.flush();
        store_sum_tiles(sums);
        if (!last) continue;
        pending.output_place = place, pending.outputs = outputs < kLinearPanel / 2 ? outputs : kLinearPanel / 2;
        pending.start(sums, row, rows < kBlockRows ? rows : kBlockRows);
      }
    }
    cutter.finish();
  }
  pending.flush();
}

// Which rows and panels are a part's: whichever side leaves the parts more even, outputs when equal.
struct PartShare {
  Range rows, panels;
};
LISSOME_INLINE PartShare share_work(int64_t rows, int64_t unit, int64_t outputs, int part, int parts) {
  const int64_t panels = (outputs + kLinearPanel - 1) / kLinearPanel, units = (rows + unit - 1) / unit;
  if ((panels + parts - 1) / parts * units <= (units + parts - 1) / parts * panels)
    return {{0, rows}, split_evenly(panels, part, parts)};
  return {split_by_unit(rows, unit, part, parts), {0, panels}};
}

// Results from row `row` and panel `panel` on; a panel's weights are of `sum` inputs.
template <typename Call>
LISSOME_INLINE Call take_from(const Call& call, int64_t row, int64_t panel, int64_t sum) {
  Call taken = call;
  const int64_t output = panel * kLinearPanel;
  taken.weight += output * sum;
  taken.y += row * call.y_stride + output;
  if (taken.bias) taken.bias += output;
  if (taken.residual) taken.residual += row * call.residual_stride + output;
  return taken;
}

LISSOME_INLINE int64_t count_outputs(Range panels, int64_t outputs) {
  const int64_t end = panels.end * kLinearPanel;
  return (end < outputs ? end : outputs) - panels.begin * kLinearPanel;
}

void run_linear_rows(const LinearF32Call& call, Range rows, Range panels, const Bf16x3Sizes& sizes, float* scratch) {
  auto* pieces = reinterpret_cast<uint16_t*>(scratch);
  const int64_t count = rows.end - rows.begin;
  Cutter cutter;
  for (int64_t row = 0; row < count; ++row)
    cut_row(cutter, call.x + (rows.begin + row) * call.x_stride, call.inputs, pieces + row * sizes.stride, sizes.plane);
  if (!cutter.is_finite()) {
    LinearF32Call taken = take_from(call, rows.begin, panels.begin, call.inputs);
    taken.x += rows.begin * call.x_stride, taken.rows = count, taken.outputs = count_outputs(panels, call.outputs);
    return linear_f32_avx512(taken, 0, 1);
  }
  const int64_t offset = 0;
  uint16_t* tiles = pieces + kBf16Pieces * sizes.plane;
  multiply_share(call, {pieces,
                        sizes.stride,
                        sizes.plane,
                        count,
                        {rows.begin, count, count},
                        call.weight,
                        call.inputs,
                        1,
                        call.outputs,
                        &offset,
                        panels,
                        tiles,
                        reinterpret_cast<float*>(tiles + 2 * kJobItems)});
}

LISSOME_INLINE void run_linear_f32(const LinearF32Call& call, int part, int parts) {
  if (call.scratch == nullptr || !pays_on_tiles(call)) return linear_f32_avx512(call, part, parts);
  const Bf16x3Sizes sizes = find_linear_bf16x3(call);
  const PartShare mine = share_work(call.rows, kBlockRows, call.outputs, part, parts);
  const int64_t count = mine.rows.end - mine.rows.begin, chunks = (count + sizes.sums - 1) / sizes.sums;
  if (mine.panels.begin == mine.panels.end) return;
  shape_full_tiles();
  for (int64_t i = 0; i < chunks; ++i) {
    const Range units = split_by_unit(count, kBlockRows, static_cast<int>(i), static_cast<int>(chunks));
    run_linear_rows(call, {mine.rows.begin + units.begin, mine.rows.begin + units.end}, mine.panels, sizes,
                    call.scratch + part * sizes.floats());
  }
  release_tiles();
}

// Rows of outputs [begin, end) of one image: its phases, cut. Returns whether all of x was finite.
bool cut_image(const ConvF32Call& call, const PhaseSizes& p, const float* x, Range rows, uint16_t* pieces,
               int64_t plane) {
  const Window& w = call.window;
  Cutter cutter;
  for (int64_t down = 0; down < p.phases_down; ++down) {
    for (int64_t across = 0; across < p.phases_across; ++across) {
      for (int64_t i = rows.begin; i < rows.end + p.more_down; ++i) {
        const int64_t h = i * w.stride_height + down - w.pad_height;
        const bool inside = static_cast<uint64_t>(h) < static_cast<uint64_t>(w.height);
        for (int64_t j = 0; j < p.pitch; ++j, pieces += p.distance) {
          const int64_t v = j * w.stride_width + across - w.pad_width;
          if (inside && static_cast<uint64_t>(v) < static_cast<uint64_t>(w.width)) {
            cut_row(cutter, x + (h * w.width + v) * call.in_channels, call.in_channels, pieces, plane);
          } else {
            clear_bf16x3(pieces, plane, p.distance);
          }
        }
      }
    }
  }
  return cutter.is_finite();
}

// The same for an image of few channels. A row, cut in whole steps, may reach into the next, which is cut after it.
bool cut_narrow_image(const ConvF32Call& call, const PhaseSizes& p, const float* x, Range rows, uint16_t* pieces,
                      int64_t plane) {
  const Window& w = call.window;
  Cutter cutter;
  clear_bf16x3(pieces, plane, plane / kStepInputs * kStepInputs);
  const int64_t fitting = p.pitch * w.stride_width - w.pad_width, width = w.width < fitting ? w.width : fitting;
  for (int64_t down = 0; down < p.phases_down; ++down) {
    for (int64_t i = rows.begin; i < rows.end + p.more_down; ++i, pieces += p.pitch * p.distance) {
      const int64_t h = i * w.stride_height + down - w.pad_height;
      if (static_cast<uint64_t>(h) >= static_cast<uint64_t>(w.height)) continue;
      cut_row(cutter, x + h * w.width * call.in_channels, width * call.in_channels,
              pieces + w.pad_width * call.in_channels, plane);
    }
  }
  return cutter.is_finite();
}

void run_conv_rows(const ConvF32Call& call, int64_t image, Range rows, Range panels, const PhaseSizes& p,
                   float* scratch) {
  const Window& w = call.window;
  const Bf16x3Sizes sizes = find_conv_bf16x3(p);
  auto* pieces = reinterpret_cast<uint16_t*>(scratch);
  const float* x = call.x + image * w.height * w.width * call.in_channels;
  const int64_t first = (image * w.out_height + rows.begin) * w.out_width, count = rows.end - rows.begin;
  const bool finite = p.overlaps ? cut_narrow_image(call, p, x, rows, pieces, sizes.plane)
                                 : cut_image(call, p, x, rows, pieces, sizes.plane);
  if (!finite) {
    ConvF32Call taken = take_from(call, first, panels.begin, p.inputs * p.taps);
    taken.x = x, taken.out_channels = count_outputs(panels, call.out_channels);
    taken.window.batch = 1, taken.window.out_height = count;
    taken.window.pad_height = w.pad_height - rows.begin * w.stride_height;
    return conv_f32_avx512(taken, 0, 1);
  }
  const int64_t phase = (count + p.more_down) * p.pitch * p.distance;
  int64_t offsets[kMostBf16x3Taps];
  for (int64_t tap = 0; tap < p.taps; ++tap) {
    const int64_t down = (p.overlaps ? tap : tap / w.kernel_width) * w.dilation_height;
    const int64_t across = p.overlaps ? 0 : tap % w.kernel_width * w.dilation_width;
    offsets[tap] = (down % w.stride_height * p.phases_across + across % w.stride_width) * phase +
                   (down / w.stride_height * p.pitch + across / w.stride_width) * p.distance;
  }
  uint16_t* tiles = pieces + kBf16Pieces * sizes.plane;
  multiply_share(call, {pieces,
                        sizes.stride,
                        sizes.plane,
                        (count - 1) * p.pitch + w.out_width,
                        {first, w.out_width, p.pitch},
                        call.weight,
                        p.inputs,
                        p.taps,
                        call.out_channels,
                        offsets,
                        panels,
                        tiles,
                        reinterpret_cast<float*>(tiles + 2 * kJobItems)});
}

LISSOME_INLINE void run_conv_f32(const ConvF32Call& call, int part, int parts) {
  if (call.scratch == nullptr || !pays_on_tiles(call)) return conv_f32_avx512(call, part, parts);
  const PhaseSizes p = find_phases(call);
  const PartShare mine = share_work(call.window.out_height, 1, call.out_channels, part, parts);
  const int64_t count = mine.rows.end - mine.rows.begin, chunks = (count + p.out_rows - 1) / p.out_rows;
  if (mine.panels.begin == mine.panels.end) return;
  shape_full_tiles();
  for (int64_t image = 0; image < call.window.batch; ++image) {
    for (int64_t i = 0; i < chunks; ++i) {
      const Range rows = {mine.rows.begin + count * i / chunks, mine.rows.begin + count * (i + 1) / chunks};
      run_conv_rows(call, image, rows, mine.panels, p, call.scratch + part * find_conv_bf16x3(p).floats());
    }
  }
  release_tiles();
}

}  // namespace
}  // namespace lissome

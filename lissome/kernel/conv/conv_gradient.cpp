// Packing, sizes, and the portable forms, which sum in double.
#include "lissome/kernel/conv/conv_gradient.h"

#include <algorithm>

#include "lissome/kernel/conv/conv_phases.h"
#include "lissome/kernel/conv/conv_weight_pieces.h"
#include "lissome/kernel/conv/kernel_versions.h"
#include "lissome/kernel/isa/portable_output.h"

namespace lissome {

int64_t packed_conv_data_f32_size(int64_t out_channels, int64_t in_channels, int64_t groups, int64_t taps) {
  return packed_conv_f32_size(in_channels, out_channels, groups, taps);
}

int64_t choose_conv_weight_splits(int64_t out_channels, int64_t in_channels, int64_t groups, int64_t taps) {
  constexpr int64_t kUnits = 32, kMostSplits = 8;
  const int64_t inputs = in_channels / groups, outputs = out_channels / groups;
  const int64_t units = groups * divide_up(outputs, kLinearPanel) * divide_up(inputs, find_weight_block(inputs, taps));
  return std::min(divide_up(kUnits, units), kMostSplits);
}

namespace {

template <typename T>
int64_t count_scratch(const ConvWeightCallOf<T>& call) {
  const ConvWeightPieces pieces = find_weight_pieces(call);
  return pieces.dy_size + pieces.band_size + pieces.sums_size;
}

}  // namespace

int64_t conv_weight_scratch(const ConvWeightF32Call& call) { return count_scratch(call); }
int64_t conv_weight_scratch(const ConvWeightBf16Call& call) { return count_scratch(call); }

namespace {

constexpr int64_t kPackedRun = 512;  // numbers of a row of the weight that are copied together

// Numbers [run.begin, run.end) of each row of one panel of 64 outputs, at most kPackedRun: rows of the weight side by
// side, then a column after the other.
void pack_forward(const PackConvF32Call& call, int64_t group, int64_t panel, Range run) {
  const int64_t taps = call.window.kernel_height * call.window.kernel_width, count = run.end - run.begin;
  const int64_t all_inputs = call.in_channels / call.groups, all_outputs = call.out_channels / call.groups;
  const int64_t first = panel * kLinearPanel, outputs = std::min(kLinearPanel, all_outputs - first);
  float rows[kLinearPanel][kPackedRun + 1];
  for (int64_t n = 0; n < kLinearPanel; ++n) {
    const float* from = call.weight + (group * all_outputs + first + n) * all_inputs * taps + run.begin;
    if (n < outputs) {
      std::copy_n(from, count, rows[n]);
    } else {
      std::fill_n(rows[n], count, 0.0f);
    }
  }
  float* packed =
      call.packed + (group * divide_up(all_outputs, kLinearPanel) + panel) * kLinearPanel * all_inputs * taps;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t ic = (run.begin + i) / taps, tap = (run.begin + i) % taps;
    float* to = packed + (tap * all_inputs + ic) * kLinearPanel;
    for (int64_t n = 0; n < kLinearPanel; ++n) to[n] = rows[n][i];
  }
}

// The rows of one output of the weight for one panel of 64 inputs, in every phase.
void pack_data(const PackConvF32Call& call, int64_t group, int64_t panel, int64_t oc) {
  const Window& w = call.window;
  const int64_t taps = w.kernel_height * w.kernel_width;
  const int64_t all_inputs = call.in_channels / call.groups, all_outputs = call.out_channels / call.groups;
  const int64_t panels = divide_up(all_inputs, kLinearPanel);
  const int64_t first = panel * kLinearPanel, inputs = std::min(kLinearPanel, all_inputs - first);
  const float* from = call.weight + ((group * all_outputs + oc) * all_inputs + first) * taps;
  const int64_t tap_size = call.groups * panels * kLinearPanel * all_outputs;
  for_each_phase(w, w.height, w.width, [&](const Phase& phase, int64_t, int64_t, int64_t first_tap) {
    float* packed =
        call.packed + first_tap * tap_size + (group * panels + panel) * kLinearPanel * all_outputs * phase.taps();
    for (int64_t i = 0; i < phase.taps(); ++i) {
      const int64_t kh = phase.rows.find_tap(i / phase.columns.taps);
      const int64_t kw = phase.columns.find_tap(i % phase.columns.taps);
      const float* tap = from + kh * w.kernel_width + kw;
      float* to = packed + (i * all_outputs + oc) * kLinearPanel;
      for (int64_t n = 0; n < inputs; ++n) to[n] = tap[n * taps];
      std::fill(to + inputs, to + kLinearPanel, 0.0f);
    }
  });
}

}  // namespace

void pack_conv_f32_portable(const PackConvF32Call& call, int part, int parts) {
  const int64_t taps = call.window.kernel_height * call.window.kernel_width;
  const int64_t inputs = call.in_channels / call.groups, outputs = call.out_channels / call.groups;
  if (call.packing == ConvPacking::data) {
    const int64_t panels = divide_up(inputs, kLinearPanel);
    const Range rows = split_evenly(call.groups * panels * outputs, part, parts);
    for (int64_t row = rows.begin; row < rows.end; ++row)
      pack_data(call, row / outputs / panels, row / outputs % panels, row % outputs);
    return;
  }
  const int64_t all = inputs * taps, runs = divide_up(all, kPackedRun);
  const int64_t panels = divide_up(outputs, kLinearPanel);
  const Range pieces = split_evenly(call.groups * panels * runs, part, parts);
  for (int64_t i = pieces.begin; i < pieces.end; ++i) {
    const int64_t first = i % runs * kPackedRun;
    pack_forward(call, i / runs / panels, i / runs % panels, {first, std::min(first + kPackedRun, all)});
  }
}

namespace {

// The sum for one number of dx, from the packed weight.
double sum_data(const ConvDataF32Call& call, int64_t n, int64_t h, int64_t v, int64_t ic) {
  const Window& w = call.window;
  const int64_t inputs = call.in_channels / call.groups, outputs = call.out_channels / call.groups;
  const int64_t group = ic / inputs, panels = divide_up(inputs, kLinearPanel);
  const int64_t panel = group * panels + ic % inputs / kLinearPanel;
  double sum = call.bias ? call.bias[ic] : 0;
  for_each_phase(w, w.height, w.width, [&](const Phase& phase, int64_t row, int64_t column, int64_t first_tap) {
    if (h % w.stride_height != row || v % w.stride_width != column) return;
    const float* weight = call.weight + first_tap * call.groups * panels * kLinearPanel * outputs +
                          panel * kLinearPanel * outputs * phase.taps() + ic % inputs % kLinearPanel;
    for (int64_t i = 0; i < phase.taps(); ++i) {
      const int64_t oh = h / w.stride_height - phase.rows.pad + i / phase.columns.taps * phase.rows.dilation;
      const int64_t ow = v / w.stride_width - phase.columns.pad + i % phase.columns.taps * phase.columns.dilation;
      if (oh < 0 || oh >= w.out_height || ow < 0 || ow >= w.out_width) continue;
      const float* dy = call.dy + ((n * w.out_height + oh) * w.out_width + ow) * call.out_channels + group * outputs;
      for (int64_t oc = 0; oc < outputs; ++oc)
        sum += static_cast<double>(dy[oc]) * weight[(i * outputs + oc) * kLinearPanel];
    }
  });
  return sum;
}

template <typename T>
double sum_weight(const ConvWeightCallOf<T>& call, int64_t oc, int64_t ic, int64_t kh, int64_t kw) {
  const Window& w = call.window;
  const int64_t input = oc / (call.out_channels / call.groups) * (call.in_channels / call.groups) + ic;
  double sum = 0;
  for (int64_t row = 0; row < w.batch * w.out_height; ++row) {
    const int64_t n = row / w.out_height,
                  h = row % w.out_height * w.stride_height - w.pad_height + kh * w.dilation_height;
    if (h < 0 || h >= w.height) continue;
    for (int64_t ow = 0; ow < w.out_width; ++ow) {
      const int64_t v = ow * w.stride_width - w.pad_width + kw * w.dilation_width;
      if (v < 0 || v >= w.width) continue;
      sum += widen_portable(call.dy[(row * w.out_width + ow) * call.out_channels + oc]) *
             widen_portable(call.x[((n * w.height + h) * w.width + v) * call.in_channels + input]);
    }
  }
  return sum;
}

// The whole sum is the first piece, the others are zero.
template <typename T>
void sum_weights(const ConvWeightCallOf<T>& call, int part, int parts) {
  const int64_t taps = call.window.kernel_height * call.window.kernel_width, inputs = call.in_channels / call.groups;
  const int64_t all = call.out_channels * inputs * taps;
  const Range numbers = split_evenly(all, part, parts);
  for (int64_t split = 1; split < call.splits; ++split)
    std::fill(call.dw + split * all + numbers.begin, call.dw + split * all + numbers.end, 0.0f);
  for (int64_t i = numbers.begin; i < numbers.end; ++i) {
    const int64_t tap = i % taps;
    call.dw[i] = static_cast<float>(sum_weight(call, i / taps / inputs, i / taps % inputs,
                                               tap / call.window.kernel_width, tap % call.window.kernel_width));
  }
}

}  // namespace

void conv_data_f32_portable(const ConvDataF32Call& call, int part, int parts) {
  const Window& w = call.window;
  const Range rows = split_evenly(w.batch * w.height * w.width, part, parts);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    for (int64_t ic = 0; ic < call.in_channels; ++ic) {
      const double sum = sum_data(call, row / w.width / w.height, row / w.width % w.height, row % w.width, ic);
      call.dx[row * call.in_channels + ic] = static_cast<float>(activate(call.epilogue, sum));
    }
  }
}

void conv_weight_f32_portable(const ConvWeightF32Call& call, int part, int parts) { sum_weights(call, part, parts); }
void conv_weight_bf16_portable(const ConvWeightBf16Call& call, int part, int parts) { sum_weights(call, part, parts); }

}  // namespace lissome

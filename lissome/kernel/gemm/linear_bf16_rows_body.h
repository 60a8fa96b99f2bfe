// What the forms of the bf16 linear share, over Floats: rows of x brought to whole steps of inputs before the product,
// and the epilogue after it.
#pragma once

#include "lissome/kernel/isa/vector_bf16.h"

#include "lissome/kernel/elementwise/activation_body.h"
#include "lissome/kernel/gemm/linear_bf16.h"
#include "lissome/kernel/gemm/linear_bf16_sizes.h"
#include "lissome/kernel/gemm/split.h"

namespace lissome {
namespace {

// Rows of x as the product reads them.
template <typename Item>
struct StagedRows {
  const Item* first;
  int64_t stride;
};

template <typename Item>
StagedRows<Item> copy_rows(const LinearBf16Call& call, Range rows, Item* to) {
  const int64_t stride = count_bf16_steps(call.inputs) * kBf16Step;
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const uint16_t* x = call.x + m * call.x_stride;
    Item* row = to + (m - rows.begin) * stride;
    for (int64_t k = 0; k < stride; k += Floats::kWidth) {
      const int64_t left = call.inputs - k;
      store(row + k, left >= Floats::kWidth ? load(x + k) : left > 0 ? load_first(x + k, left) : zeros());
    }
  }
  return {to, stride};
}

// bf16 where it lies when inputs are a multiple of `unit`, else copied.
[[maybe_unused]] StagedRows<uint16_t> stage_rows(const LinearBf16Call& call, Range rows, int64_t unit,
                                                 uint16_t* scratch) {
  if (call.inputs % unit == 0) return {call.x + rows.begin * call.x_stride, call.x_stride};
  return copy_rows(call, rows, scratch);
}
[[maybe_unused]] StagedRows<float> stage_rows(const LinearBf16Call& call, Range rows, int64_t, float* scratch) {
  return copy_rows(call, rows, scratch);
}

// The part of the result that a block of sums is for.
struct Bf16Place {
  int64_t row, output, rows, outputs;
};

// One row of sums, whole registers, becomes results.
template <typename Function>
LISSOME_INLINE void finish_row(const OutputBf16& call, const float* sums, Bf16Place place, int64_t row,
                               const Function& activation) {
  const uint16_t* residual = call.residual ? call.residual + row * call.residual_stride + place.output : nullptr;
  uint16_t* y = call.y + row * call.y_stride + place.output;
  for (int64_t n = 0; n < place.outputs; n += Floats::kWidth) {
    const int64_t left = place.outputs - n;
    const bool whole = left >= Floats::kWidth;
    const auto read = [&](const auto* from) { return whole ? load(from) : load_first(from, left); };
    Floats value = load(sums + n);
    if (call.bias) value = value + read(call.bias + place.output + n);
    if (call.residual_place == ResidualPlace::none) {
      value = activation(value);
    } else if (call.residual_place == ResidualPlace::before_activation) {
      value = activation(value + read(residual + n));
    } else {
      value = activation(value) + read(residual + n);
    }
    if (whole) {
      store(y + n, value);
    } else {
      store_first(y + n, value, left);
    }
  }
}

// Which panels and rows a part computes.
struct Bf16Share {
  Range panels, rows;
};
LISSOME_INLINE Bf16Share share_bf16(const LinearBf16Call& call, int64_t unit, int part, int parts) {
  const int64_t panels = (call.outputs + kBf16Panel - 1) / kBf16Panel, blocks = (call.rows + unit - 1) / unit;
  if (shares_columns(blocks, panels, parts, call.rows * call.inputs, call.outputs * call.inputs))
    return {split_evenly(panels, part, parts), {0, call.rows}};
  return {{0, panels}, split_by_unit(call.rows, unit, part, parts)};
}

// `multiply(staged, rows, panels)` with the rows of the share, taken in chunks that stay in cache. `unit`: see
// stage_rows().
template <typename Item, typename Function>
LISSOME_INLINE void run_share(const LinearBf16Call& call, Bf16Share share, int64_t unit, int part,
                              const Function& multiply) {
  auto* scratch = reinterpret_cast<Item*>(call.scratch + part * linear_bf16_scratch(call.rows, call.inputs));
  const int64_t chunk = choose_bf16_chunk(call.inputs);
  for (int64_t row = share.rows.begin; row < share.rows.end; row += chunk) {
    const Range rows = {row, row + chunk < share.rows.end ? row + chunk : share.rows.end};
    const StagedRows<Item> staged = stage_rows(call, rows, unit, scratch);
    multiply(staged, rows, share.panels);
  }
}

}  // namespace
}  // namespace lissome

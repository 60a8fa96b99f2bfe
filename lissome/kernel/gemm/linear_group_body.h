// The vector forms of linear_group and quantize_groups. A register holds one four of inputs for 8 or 16 outputs;
// numbers without sign come from the weight, so that what they are too large by is taken out with one number a row and
// group.
#pragma once

#include "lissome/kernel/gemm/linear_group.h"

#include "lissome/kernel/isa/vector_int8.h"

#include "lissome/kernel/isa/vector_bf16.h"

#include <cstring>

#include "lissome/kernel/elementwise/activation_body.h"
#include "lissome/kernel/gemm/split.h"

namespace lissome {
namespace {

constexpr int kGroupVectors = static_cast<int>(kGroupBlock / Floats::kWidth);
constexpr int kGroupRows = 4;                    // at a time
constexpr int64_t kGroupFour = 4 * kGroupBlock;  // bytes
constexpr int64_t kAhead = 2048;                 // bytes of the weight that are fetched before they are needed

LISSOME_INLINE Weights broadcast_four(const int8_t* p) {
  int32_t four;
  std::memcpy(&four, p, 4);
  return broadcast_weights(four);
}

// The products of the inputs of one group, `offset` taken out of each number of the weight.
template <int Bits, int Rows>
LISSOME_INLINE void sum_group(const LinearGroupCall& call, const uint8_t* weight, int64_t row, int64_t group,
                              Ints (&sums)[Rows][kGroupVectors]) {
  const int8_t* x = call.x + row * call.inputs + group * kWeightGroup;
  const int64_t groups = call.inputs / kWeightGroup;
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) {
    // A plan from a stranger may hold any sums: the product wraps around, as those of the inputs do.
    const auto sum = static_cast<uint32_t>(call.x_sums[(row + r) * groups + group]);
    const auto taken = static_cast<int32_t>(sum * static_cast<uint32_t>(Bits == 4 ? -8 : -128));
#pragma GCC unroll 2
    for (int v = 0; v < kGroupVectors; ++v) sums[r][v] = fill_ints(taken);
  }
#pragma GCC unroll 8
  for (int four = 0; four < Bits; ++four) {
#pragma GCC unroll 2
    for (int v = 0; v < kGroupVectors; ++v) {
      const uint8_t* p = weight + four * kGroupFour + v * Floats::kWidth * 4;
      if constexpr (Bits == 8) {
        const Inputs numbers = load_any_inputs(p);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) {
          sums[r][v] = add_products(sums[r][v], numbers, broadcast_four(x + r * call.inputs + 4 * four));
        }
      } else {
        const HalfBytes halves = load_half_bytes(p);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) {
          const int8_t* row_x = x + r * call.inputs + 4 * four;
          sums[r][v] = add_products(sums[r][v], halves.low, broadcast_four(row_x));
          sums[r][v] = add_products(sums[r][v], halves.high, broadcast_four(row_x + kWeightGroup / 2));
        }
      }
    }
  }
}

template <int Rows, typename Function>
LISSOME_INLINE void finish_group_block(const LinearGroupCall& call, int64_t row, int64_t output,
                                       const Floats (&sums)[Rows][kGroupVectors], const Function& activation) {
  for (int v = 0; v < kGroupVectors; ++v) {
    const int64_t n = output + v * Floats::kWidth, left = call.outputs - n;
    if (left <= 0) return;
    const int64_t count = left < Floats::kWidth ? left : Floats::kWidth;
    for (int r = 0; r < Rows; ++r) {
      const int64_t at = (row + r) * call.outputs + n;
      Floats y = sums[r][v];
      if (call.bias) y = y + load_first(call.bias + n, count);
      if (call.residual) y = y + load_first(call.residual + at, count);
      store_first(call.y + at, activation(y), count);
    }
  }
}

template <int Bits, int Rows>
void multiply_block(const LinearGroupCall& call, int64_t block, int64_t row) {
  const int64_t groups = call.inputs / kWeightGroup, bytes = kWeightGroup * kGroupBlock * Bits / 8;
  const uint8_t* weight = call.weight + block * groups * bytes;
  const int shift = call.scale_inputs == 4 * kWeightGroup ? 2 : call.scale_inputs == 2 * kWeightGroup ? 1 : 0;
  const uint16_t* scales = call.weight_scales + block * (groups >> shift) * kGroupBlock;
  Floats y[Rows][kGroupVectors];
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < kGroupVectors; ++v) y[r][v] = zeros();
  }
  for (int64_t g = 0; g < groups; ++g, weight += bytes) {
    for (int64_t line = 0; line < bytes; line += 64) __builtin_prefetch(weight + kAhead + line);
    Ints sums[Rows][kGroupVectors];
    sum_group<Bits, Rows>(call, weight, row, g, sums);
#pragma GCC unroll 2
    for (int v = 0; v < kGroupVectors; ++v) {
      const Floats scale = load(scales + (g >> shift) * kGroupBlock + v * Floats::kWidth);
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) {
        const Floats factor = scale * fill(call.x_scales[(row + r) * groups + g]);
        y[r][v] = multiply_add(to_floats(sums[r][v]), factor, y[r][v]);
      }
    }
  }
  choose_activation(call.epilogue, [&](const auto& activation) {
    finish_group_block<Rows>(call, row, block * kGroupBlock, y, activation);
  });
}

template <int Bits>
void multiply_rows(const LinearGroupCall& call, int64_t block) {
  int64_t row = 0;
  for (; row + kGroupRows <= call.rows; row += kGroupRows) multiply_block<Bits, kGroupRows>(call, block, row);
  for (; row < call.rows; ++row) multiply_block<Bits, 1>(call, block, row);
}

void run_linear_group(const LinearGroupCall& call, int part, int parts) {
  const Range outputs = split_by_unit(call.outputs, kGroupBlock, part, parts);
  for (int64_t n = outputs.begin; n < outputs.end; n += kGroupBlock) {
    call.bits == 4 ? multiply_rows<4>(call, n / kGroupBlock) : multiply_rows<8>(call, n / kGroupBlock);
  }
}

// Of one group. Numbers go through memory as u8, 128 more than they are.
LISSOME_INLINE void quantize_group(const float* x, int8_t* y, float* scale, int32_t* sum) {
  constexpr int kVectors = static_cast<int>(kWeightGroup / Floats::kWidth);
  Floats all[kVectors], largest = zeros();
  for (int v = 0; v < kVectors; ++v) {
    all[v] = load(x + v * Floats::kWidth);
    largest = max_with(largest, absolute_value(all[v]));
  }
  Floats whole = zeros();
  const float most = max_lanes(largest), divided = most / 127;
  const float chosen = divided < 1e-30f ? 1 : divided;
  alignas(64) uint8_t bytes[kWeightGroup];
  const Floats inverse = fill(1 / chosen);
  for (int v = 0; v < kVectors; ++v) {
    const Floats rounded = round_to_nearest(all[v] * inverse);
    whole = whole + rounded;
    store(bytes + v * Floats::kWidth, rounded + fill(128));
  }
  const float total = sum_lanes(whole);
  const bool finite = most * 0 == 0 && total * 0 == 0;  // where the largest lost a NaN, the sum has it
  for (int64_t i = 0; i < kWeightGroup; i += 8) {
    uint64_t eight;
    std::memcpy(&eight, bytes + i, 8);
    eight = finite ? eight ^ 0x8080808080808080u : 0;
    std::memcpy(y + i, &eight, 8);
  }
  *scale = finite ? chosen : __builtin_nanf("");
  *sum = finite ? static_cast<int32_t>(total) : 0;
}

void run_quantize_groups(const QuantizeGroupsCall& call, int part, int parts) {
  const Range groups = split_evenly(call.rows * (call.inputs / kWeightGroup), part, parts);
  for (int64_t g = groups.begin; g < groups.end; ++g) {
    quantize_group(call.x + g * kWeightGroup, call.y + g * kWeightGroup, call.scales + g, call.sums + g);
  }
}

}  // namespace
}  // namespace lissome

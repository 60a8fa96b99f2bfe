// Packing, and the portable forms.
#include "lissome/kernel/gemm/linear_group.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "lissome/kernel/gemm/kernel_versions.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/convert_element.h"

namespace lissome {
namespace {

constexpr int64_t kFour = 4 * kGroupBlock;  // bytes of a four of inputs, for the outputs of a block

int64_t count_blocks(int64_t outputs) { return (outputs + kGroupBlock - 1) / kGroupBlock; }
int64_t group_bytes(int bits) { return kWeightGroup * kGroupBlock * bits / 8; }

// Number (n, k), with its sign.
int32_t read_number(const uint8_t* weight, int64_t inputs, int bits, int64_t n, int64_t k) {
  const int64_t block = n / kGroupBlock * (inputs / kWeightGroup) + k / kWeightGroup;
  const int64_t four = k % kWeightGroup / 4, place = n % kGroupBlock * 4 + k % 4;
  const uint8_t* group = weight + block * group_bytes(bits);
  if (bits == 8) return group[four * kFour + place] - 128;
  const uint8_t pair = group[four % 4 * kFour + place];
  return (four < 4 ? pair & 15 : pair >> 4) - 8;
}

// Where the first scale of output n stands; the next is a block further.
int64_t scales_offset(int64_t inputs, int64_t scale_inputs, int64_t n) {
  return n / kGroupBlock * (inputs / scale_inputs) * kGroupBlock + n % kGroupBlock;
}

}  // namespace

int64_t packed_group_size(int64_t outputs, int64_t inputs, int bits) {
  return count_blocks(outputs) * (inputs / kWeightGroup) * group_bytes(bits);
}

int64_t packed_group_scales(int64_t outputs, int64_t inputs, int64_t scale_inputs) {
  return count_blocks(outputs) * (inputs / scale_inputs) * kGroupBlock;
}

void pack_group_weight(const int8_t* weight, int64_t outputs, int64_t inputs, int bits, uint8_t* packed) {
  const int64_t groups = inputs / kWeightGroup;
  std::memset(packed, 0, static_cast<size_t>(packed_group_size(outputs, inputs, bits)));
  for (int64_t n = 0; n < outputs; ++n) {
    for (int64_t k = 0; k < inputs; ++k) {
      const int8_t number = weight[n * inputs + k];
      const int64_t four = k % kWeightGroup / 4, place = n % kGroupBlock * 4 + k % 4;
      uint8_t* group = packed + (n / kGroupBlock * groups + k / kWeightGroup) * group_bytes(bits);
      if (bits == 8) {
        group[four * kFour + place] = static_cast<uint8_t>(number + 128);
      } else {
        group[four % 4 * kFour + place] |= static_cast<uint8_t>((number + 8) << (four < 4 ? 0 : 4));
      }
    }
  }
}

void pack_group_scales(const uint16_t* scales, int64_t outputs, int64_t inputs, int64_t scale_inputs,
                       uint16_t* packed) {
  const int64_t count = inputs / scale_inputs;
  std::fill_n(packed, packed_group_scales(outputs, inputs, scale_inputs), uint16_t{0});
  for (int64_t n = 0; n < outputs; ++n) {
    uint16_t* to = packed + scales_offset(inputs, scale_inputs, n);
    for (int64_t i = 0; i < count; ++i) to[i * kGroupBlock] = scales[n * count + i];
  }
}

void linear_group_portable(const LinearGroupCall& call, int part, int parts) {
  const int64_t groups = call.inputs / kWeightGroup;
  const Range outputs = split_by_unit(call.outputs, kGroupBlock, part, parts);
  for (int64_t n = outputs.begin; n < outputs.end; ++n) {
    const uint16_t* scales = call.weight_scales + scales_offset(call.inputs, call.scale_inputs, n);
    for (int64_t m = 0; m < call.rows; ++m) {
      float y = 0;
      for (int64_t g = 0; g < groups; ++g) {
        int32_t sum = 0;
        for (int64_t k = g * kWeightGroup; k < (g + 1) * kWeightGroup; ++k) {
          sum += call.x[m * call.inputs + k] * read_number(call.weight, call.inputs, call.bits, n, k);
        }
        const float own = widen_bf16(scales[g * kWeightGroup / call.scale_inputs * kGroupBlock]);
        y = std::fma(static_cast<float>(sum), own * call.x_scales[m * groups + g], y);
      }
      if (call.bias) y += call.bias[n];
      if (call.residual) y += call.residual[m * call.outputs + n];
      call.y[m * call.outputs + n] = static_cast<float>(activate(call.epilogue, static_cast<double>(y)));
    }
  }
}

void gather_groups_portable(const GatherGroupsCall& call, int part, int parts) {
  const Range range = split_evenly(call.count, part, parts);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t row = call.narrow_indices ? static_cast<const int32_t*>(call.indices)[i]
                                            : static_cast<const int64_t*>(call.indices)[i];
    float* y = call.y + i * call.columns;
    if (row < 0 || row >= call.rows) {
      __atomic_store_n(call.fault, call.fault_code, __ATOMIC_RELAXED);
      std::fill_n(y, call.columns, 0.0f);
      continue;
    }
    const uint16_t* scales = call.scales + scales_offset(call.columns, call.scale_inputs, row);
    for (int64_t k = 0; k < call.columns; ++k) {
      y[k] = static_cast<float>(read_number(call.table, call.columns, call.bits, row, k)) *
             widen_bf16(scales[k / call.scale_inputs * kGroupBlock]);
    }
  }
}

void quantize_groups_portable(const QuantizeGroupsCall& call, int part, int parts) {
  const Range groups = split_evenly(call.rows * (call.inputs / kWeightGroup), part, parts);
  for (int64_t g = groups.begin; g < groups.end; ++g) {
    const float* x = call.x + g * kWeightGroup;
    float largest = 0;
    bool finite = true;
    for (int64_t i = 0; i < kWeightGroup; ++i) {
      largest = std::max(largest, std::abs(x[i]));
      finite = finite && std::isfinite(x[i]);
    }
    float scale = largest / 127;
    if (scale < 1e-30f) scale = 1;
    const float inverse = 1 / scale;
    int32_t sum = 0;
    for (int64_t i = 0; i < kWeightGroup; ++i) {
      const auto number = finite ? static_cast<int8_t>(std::nearbyint(x[i] * inverse)) : int8_t{0};
      call.y[g * kWeightGroup + i] = number;
      sum += number;
    }
    call.scales[g] = finite ? scale : std::numeric_limits<float>::quiet_NaN();
    call.sums[g] = sum;
  }
}

}  // namespace lissome

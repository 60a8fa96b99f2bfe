// Packs the weight of a bf16 convolution, a square of 16 outputs and 32 inputs after the other: the portable form.
#include <algorithm>

#include "lissome/kernel/conv/kernel_versions.h"
#include "lissome/kernel/conv/pack_conv_bf16.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/convert_element.h"

namespace lissome {
namespace {

uint16_t round_weight(uint16_t value) { return value; }
uint16_t round_weight(float value) { return narrow_bf16(value); }

template <typename T>
void pack_square(const PieceWeight& from, const T* weight, const int64_t (&inputs)[kBf16Step], int64_t first,
                 uint16_t* to) {
  const int64_t outputs = std::clamp<int64_t>(from.piece.outputs - first, 0, 16);
  for (int64_t n = 0; n < outputs; ++n) {
    const T* row = weight + from.first() + (first + n) * from.output_stride();
    for (int64_t k = 0; k < kBf16Step; ++k)
      to[k / 2 * 32 + n * 2 + k % 2] = inputs[k] < 0 ? 0 : round_weight(row[inputs[k]]);
  }
  for (int64_t n = outputs; n < 16; ++n) {
    for (int64_t k = 0; k < kBf16Step; ++k) to[k / 2 * 32 + n * 2 + k % 2] = 0;
  }
}

// Steps of all panels of all pieces are shared among the parts.
template <typename T>
void pack_pieces(const PackConvBf16Call& call, const T* weight, int part, int parts) {
  const ConvBf16Call conv = describe_packed(call);
  for_each_piece(conv, [&](const ConvPiece& piece, const Phase& phase) {
    const PieceWeight from = {conv, piece, phase};
    const int64_t steps = from.steps(), panels = (piece.outputs + kBf16Panel - 1) / kBf16Panel;
    const Range range = split_evenly(panels * steps, part, parts);
    for (int64_t i = range.begin; i < range.end; ++i) {
      int64_t inputs[kBf16Step];
      for (int64_t k = 0; k < kBf16Step; ++k) inputs[k] = from.find_weight(i % steps * kBf16Step + k);
      uint16_t* to = call.packed + piece.weight_offset + i * kBf16Panel * kBf16Step;
      pack_square(from, weight, inputs, i / steps * kBf16Panel, to);
      pack_square(from, weight, inputs, i / steps * kBf16Panel + 16, to + 512);
    }
  });
}

}  // namespace

void pack_conv_bf16_portable(const PackConvBf16Call& call, int part, int parts) {
  if (call.weight) {
    pack_pieces(call, call.weight, part, parts);
  } else {
    pack_pieces(call, call.wide_weight, part, parts);
  }
}

void pack_conv_bf16(const ConvBf16Call& call, const uint16_t* weight, uint16_t* packed) {
  PackConvBf16Call pack;
  pack.weight = weight, pack.packed = packed;
  pack.in_channels = call.in_channels, pack.out_channels = call.out_channels, pack.groups = call.groups;
  pack.transposed = call.transposed, pack.window = call.window;
  pack_conv_bf16_portable(pack, 0, 1);
}

}  // namespace lissome

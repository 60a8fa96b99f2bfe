// The bf16 linear and convolution over Floats: a convolution is the linear's product over columns.
#pragma once

#include "lissome/kernel/conv/conv_bf16_rows_body.h"
#include "lissome/kernel/gemm/linear_bf16_body.h"

namespace lissome {
namespace {

constexpr ColumnForm kColumns = {.rows = kBf16TileRows, .step_cycles = 400, .unit = kInPlace};

LISSOME_INLINE void run_conv_bf16(const ConvBf16Call& call, int part, int parts) {
  for_each_piece(call, [&](const ConvPiece& piece, const Phase&) {
    const OutputBf16 output = output_of(call, piece);
    const auto multiply = [&](StagedRows<StagedItem> x, const PixelMap& map, int64_t rows, Range panels) {
      const Bf16Product product = {output, map, call.weight + piece.weight_offset, piece.outputs,
                                   piece.inputs * piece.taps()};
      run_bf16_panels(product, x, {0, rows}, panels);
    };
    if (call.planes) return run_planes<StagedItem>(call, piece, kColumns, part, parts, multiply);
    run_columns<StagedItem>(call, piece, kColumns, part, parts, multiply);
  });
}

}  // namespace
}  // namespace lissome

// Steps that move bytes from one order or place to another, whatever they are.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// x of any strides, made dense in the order of y. Items of at most 8 bytes, at most kMoveRank dimensions.
struct CopyStep {
  static constexpr std::string_view kKernel = "copy";
  Operand x;
  Result y;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, DtypeSet::all(), ValueLayout::any);
    fields.result("y", step.y, DtypeSet::all(), ValueLayout::dense);
  }
};

// Pieces joined along `dim`; they and the result have the same order and, but for `dim`, the same sizes.
struct ConcatStep {
  static constexpr std::string_view kKernel = "concat";
  Operand piece;
  OperandList more_pieces;
  Result y;
  int64_t dim = 0;

  void add_piece(int value) {
    if (piece.value < 0) {
      piece = {value};
    } else {
      more_pieces.values.push_back(value);
    }
  }
  // All of them.
  std::vector<Operand> pieces() const {
    std::vector<Operand> all = {piece};
    for (const int value : more_pieces.values) all.push_back({value});
    return all;
  }

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("piece", step.piece, DtypeSet::all(), ValueLayout::dense);
    fields.operand("another piece", step.more_pieces, DtypeSet::all(), ValueLayout::dense);
    fields.result("y", step.y, DtypeSet::all(), ValueLayout::dense);
    fields.integer("dim", step.dim, 0, kMostDimension, kRequired);
  }
};

// x with `value` around it, in the order of x: `before` and `after` say how much, one number a dimension. Negative
// numbers cut x instead.
struct PadStep {
  static constexpr std::string_view kKernel = "pad";
  Operand x;
  Result y;
  std::vector<int64_t> before, after;
  double value = 0;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, DtypeSet::all(), ValueLayout::dense);
    fields.result("y", step.y, DtypeSet::all(), ValueLayout::dense);
    fields.integers("before", step.before, -kLargestBytes, kLargestBytes, kRequired);
    fields.integers("after", step.after, -kLargestBytes, kLargestBytes, kRequired);
    fields.any_number("value", step.value);
  }
};

}  // namespace lissome

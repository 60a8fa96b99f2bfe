// Steps that move bytes from one order or place to another, whatever they are.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// x of any strides, made dense in the order of y. Items of at most 8 bytes, at most kMoveRank dimensions.
// Case, rows = 1..40 (1024), columns = 1..37 (768):
//   input %x: f32[{rows}, {columns}]
//   %turned: f32[{columns}, {rows}] = aten::permute(%x, [1, 0])
//   %y: f32[{columns*rows}] = aten::reshape(%turned, [{columns*rows}])
//   return %y
// Case, n = 1..3 (2), c = 1..20 (64), h = 1..5 (56), w = 1..8 (56):
//   # Channels last.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   %turned: f32[{n}, {h}, {w}, {c}] = aten::permute(%x, [0, 2, 3, 1])
//   %y: f32[{n}, {h*w*c}] = aten::reshape(%turned, [{n}, {h*w*c}])
//   return %y
// Case, n = 1..3 (8), rows = 1..9 (128), heads = 1..5 (12), size = 1..40 (64):
//   # Heads first, in bf16.
//   input %x: f32[{n}, {rows}, {heads}, {size}]
//   %narrow: bf16[{n}, {rows}, {heads}, {size}] = aten::to.dtype(%x, bf16)
//   %turned: bf16[{n}, {heads}, {rows}, {size}] = aten::transpose.int(%narrow, 1, 2)
//   %y: bf16[{n*heads}, {rows}, {size}] = aten::reshape(%turned, [{n*heads}, {rows}, {size}])
//   return %y
// Case, n = 1..3 (1), c = 1..9 (16), h = 1..5 (56), w = 1..6 (56):
//   input %x: f32[{n}, {4*c}, {h}, {w}]
//   %y: f32[{n}, {c}, {2*h}, {2*w}] = aten::pixel_shuffle(%x, 2)
//   return %y
// Case, a = 1..9 (64), b = 1..20 (64), c = 1..9 (128):
//   # Bytes, in the opposite order; a part of i64.
//   input %x: u8[{a}, {b}, {c}]
//   input %ids: i64[{a}, {2*b}]
//   %turned: u8[{c}, {b}, {a}] = aten::permute(%x, [2, 1, 0])
//   %y: u8[{c*b*a}] = aten::reshape(%turned, [{c*b*a}])
//   %half: i64[{a}, {b}] = aten::slice.Tensor(%ids, 1, 0, {2*b}, 2)
//   %z: i64[{a*b}] = aten::reshape(%half, [{a*b}])
//   return %y, %z
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

// Pieces joined along `dim`; they and the result have the same order and, but for `dim`, the same sizes. A piece may be
// cut out of something wider, if what it gives to each run of the result is one run, equally far from the next.
// Case, n = 1..3 (8), a = 1..9 (96), b = 1..5 (160), columns = 1..20 (768):
//   input %x: f32[{n}, {a}, {columns}]
//   input %y: f32[{n}, {b}, {columns}]
//   %joined: f32[{n}, {a+b}, {columns}] = aten::cat([%x, %y], 1)
//   return %joined
// Case, rows = 1..20 (2048), a = 1..9 (128), b = 1..20 (256), c = 1..5 (64):
//   input %x: i64[{rows}, {a}]
//   input %y: i64[{rows}, {b}]
//   input %z: i64[{rows}, {c}]
//   %joined: i64[{rows}, {a+b+c}] = aten::cat([%x, %y, %z], -1)
//   return %joined
// Case, n = 1..3 (1), a = 1..20 (64), h = 1..5 (28), w = 1..6 (28):
//   # Images with channels last.
//   input %x: f32[{n}, {a}, {2*h}, {2*w}]
//   %high: f32[{n}, {a}, {h}, {w}] = aten::max_pool2d(%x, [2, 2])
//   %mean: f32[{n}, {a}, {h}, {w}] = aten::avg_pool2d(%x, [2, 2])
//   %joined: f32[{n}, {2*a}, {h}, {w}] = aten::cat([%high, %mean], 1)
//   return %joined
// Case, n = 1..3 (1), a = 1..20 (64), b = 1..20 (64), h = 1..5 (28), w = 1..6 (28):
//   # A part of the channels is joined with others.
//   input %x: f32[{n}, {a+b}, {2*h}, {2*w}]
//   %p: f32[{n}, {a+b}, {h}, {w}] = aten::max_pool2d(%x, [2, 2])
//   %part: f32[{n}, {b}, {h}, {w}] = aten::slice.Tensor(%p, 1, {a}, {a+b})
//   %joined: f32[{n}, {a+2*b}, {h}, {w}] = aten::cat([%p, %part], 1)
//   return %joined
// Case, rows = 1..20 (512), a = 1..20 (64), b = 1..20 (64):
//   input %x: f32[{rows}, {a+b}]
//   %part: f32[{rows}, {a}] = aten::slice.Tensor(%x, 1, 0, {a})
//   %joined: f32[{rows}, {2*a+b}] = aten::cat([%part, %x], 1)
//   return %joined
// Case, n = 2..5 (9), c = 1..20 (64), h = 1..5 (56), w = 1..6 (56):
//   # Neighbouring images beside each other.
//   input %x: f32[{n}, {c}, {2*h}, {2*w}]
//   %p: f32[{n}, {c}, {h}, {w}] = aten::max_pool2d(%x, [2, 2])
//   %first: f32[{n-1}, {c}, {h}, {w}] = aten::slice.Tensor(%p, 0, 0, {n-1})
//   %last: f32[{n-1}, {c}, {h}, {w}] = aten::slice.Tensor(%p, 0, 1, {n})
//   %joined: f32[{n-1}, {2*c}, {h}, {w}] = aten::cat([%first, %last], 1)
//   return %joined
struct ConcatStep {
  static constexpr std::string_view kKernel = "concat";
  Operand piece;
  OperandList more_pieces;
  Result y;
  int64_t dim = 0;

  void add_piece(PlanValueId value) {
    if (!is_value(piece.value)) {
      piece = {value};
    } else {
      more_pieces.values.push_back(value);
    }
  }
  // All of them.
  std::vector<Operand> pieces() const {
    std::vector<Operand> all = {piece};
    for (const PlanValueId value : more_pieces.values) all.push_back({value});
    return all;
  }

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("piece", step.piece, DtypeSet::all(), ValueLayout::any);
    fields.operand("another piece", step.more_pieces, DtypeSet::all(), ValueLayout::any);
    fields.result("y", step.y, DtypeSet::all(), ValueLayout::dense);
    fields.integer("dim", step.dim, 0, kMostDimension, kRequired);
  }
};

bool is_pad_fill(std::string_view word);

// x with more around it, in the order of x: `before` and `after` say how much, one number a dimension; negative numbers
// cut x instead. What stands around it: `value`, or elements of x (PadFill). With `roll`, `before` is taken modulo the
// size and nothing is added: y[i] = x[(i - before) mod size] (aten::roll).
// Case, n = 1..3 (4), c = 1..9 (64), h = 1..6 (56), w = 1..8 (56):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   %around: f32[{n}, {c}, {h+3}, {w+3}] = aten::constant_pad_nd(%x, [1, 2, 3, 0], 1.5)
//   return %around
// Case, rows = 2..9 (1024), columns = 3..40 (512):
//   # Cuts lines at one side.
//   input %x: i64[{rows}, {columns}]
//   %y: i64[{rows+1}, {columns-1}] = aten::pad(%x, [1, -2, -1, 2], "constant", 7.0)
//   return %y
// Case, n = 1..3 (1), c = 1..20 (64), h = 1..5 (28), w = 1..6 (28):
//   # An image with channels last.
//   input %x: f32[{n}, {c}, {2*h}, {2*w}]
//   %p: f32[{n}, {c}, {h}, {w}] = aten::max_pool2d(%x, [2, 2])
//   %around: f32[{n}, {c}, {h+2}, {w+2}] = aten::constant_pad_nd(%p, [1, 1, 1, 1])
//   return %around
// Case, n = 1..3 (1), h = 5..9 (56), w = 5..9 (56), c = 1..20 (96), s = 1..4 (3):
//   # Windows that are shifted.
//   input %x: f32[{n}, {h}, {w}, {c}]
//   %y: f32[{n}, {h}, {w}, {c}] = aten::roll(%x, [-{s}, -{s}], [1, 2])
//   return %y
// Case, n = 1..3 (8), c = 1..20 (64), h = 5..9 (56), w = 5..9 (56):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   %y: f32[{n}, {c}, {h+4}, {w+3}] = aten::pad(%x, [2, 1, 1, 3], "reflect")
//   return %y
// Case, c = 1..20 (64), h = 5..9 (56), w = 5..9 (56):
//   input %x: f32[2, {c}, {h}, {w}]
//   %around: f32[2, {c}, {h+2}, {w+5}] = aten::replication_pad2d(%x, [2, 3, 1, 1])
//   %y: f32[2, {c}, {h+2}, {w+5}] = aten::roll(%around, [{h}, 1], [-1, 1])
//   return %y
struct PadStep {
  static constexpr std::string_view kKernel = "pad";
  Operand x;
  Result y;
  std::vector<int64_t> before, after;
  std::string fill = "constant";
  double value = 0;
  bool roll = false;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, DtypeSet::all(), ValueLayout::dense);
    fields.result("y", step.y, DtypeSet::all(), ValueLayout::dense);
    fields.integers("before", step.before, -kLargestBytes, kLargestBytes, kRequired);
    fields.integers("after", step.after, -kLargestBytes, kLargestBytes, kRequired);
    fields.text("fill", step.fill, is_pad_fill);
    fields.any_number("value", step.value);
    fields.flag("roll", step.roll);
  }
};

}  // namespace lissome

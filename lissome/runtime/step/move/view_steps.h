// Steps that move nothing: their result lies in the memory of their operand.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

bool is_view_form(std::string_view word);

// A new shape, order or part of x, by `form`:
//   reshape   x, dense in row order, in the sizes of y
//   split     the last dimension in several
//   merge     the last two dimensions in one
//   permute   dimension i of y is dimension dims[i] of x
//   expand    as broadcasting: strides of 0 where a size of 1 is repeated
//   slice     along `dim` from `start` on, every `step`-th; as many as y has
//   select    place `index` of `dim`, which y does not have
// Negative starts and indices count from the end. Where `measured` is given, both begin at its size of dimension
// `measured_dim` instead, as where a growing cache ends.
// Case, n = 1..4 (8), a = 4..9 (128), b = 1..20 (256):
//   # Of a named dimension.
//   dim n in {n}..{n+2}
//   input %x: f32[n, {a}, {b}]
//   parameter @row: f32[1, 1, {b}]
//   %flat: f32[n, {a*b}] = aten::reshape(%x, [-1, {a*b}])
//   %turned: f32[{a*b}, n] = aten::permute(%flat, [1, 0])
//   %cut: f32[n, 3, {b}] = aten::slice.Tensor(%x, 1, 1, 4)
//   %one: f32[n, {b}] = aten::select.int(%x, 1, 2)
//   %wide: f32[n, {a}, {b}] = aten::expand_as(@row, %x)
//   %more: f32[n, 3, {b}] = aten::mul.Tensor(%cut, 3.0)
//   %sum: f32[n, {b}] = aten::add.Tensor(%one, 2.0)
//   return %turned, %more, %sum, %wide
// Case, n = 1..3 (1), rows = 1..9 (512), heads = 1..5 (12), size = 1..20 (64):
//   # One part of what a layer gives for q, k and v is split into heads.
//   input %x: f32[{n}, {rows}, {3*heads*size}]
//   %k: f32[{n}, {rows}, {heads*size}] = aten::slice.Tensor(%x, 2, {heads*size}, {2*heads*size})
//   %split: f32[{n}, {rows}, {heads}, {size}] = aten::reshape(%k, [{n}, {rows}, {heads}, {size}])
//   %turned: f32[{n}, {heads}, {rows}, {size}] = aten::transpose.int(%split, 1, 2)
//   %y: f32[{n}, {heads}, {rows}, {size}] = aten::mul.Tensor(%turned, 0.5)
//   return %y
// Case, n = 1..3 (1), c = 1..20 (64), h = 1..5 (28), w = 1..6 (28):
//   # Pixels of an image with channels last become rows.
//   input %x: f32[{n}, {c}, {2*h}, {2*w}]
//   %p: f32[{n}, {c}, {h}, {w}] = aten::max_pool2d(%x, [2, 2])
//   %flat: f32[{n}, {c}, {h*w}] = aten::reshape(%p, [{n}, {c}, {h*w}])
//   %turned: f32[{n}, {h*w}, {c}] = aten::permute(%flat, [0, 2, 1])
//   %y: f32[{n}, {h*w}, {c}] = aten::add.Tensor(%turned, 1.0)
//   return %y
// Case, n = 1..3 (1), groups = 2..4 (2), c = 1..70 (58), h = 1..5 (28), w = 1..6 (28):
//   # Channels in groups are taken by turns.
//   input %x: f32[{n}, {groups*c}, {2*h}, {2*w}]
//   %p: f32[{n}, {groups*c}, {h}, {w}] = aten::max_pool2d(%x, [2, 2])
//   %split: f32[{n}, {groups}, {c}, {h}, {w}] = aten::reshape(%p, [{n}, {groups}, {c}, {h}, {w}])
//   %turned: f32[{n}, {c}, {groups}, {h}, {w}] = aten::transpose.int(%split, 1, 2)
//   %y: f32[{n}, {groups*c}, {h}, {w}] = aten::reshape(%turned, [{n}, {groups*c}, {h}, {w}])
//   return %y
// Case, n = 1..5 (64), a = 8..20 (4096), b = 1..20 (256):
//   # A part that begins where the size of another value says, as where a growing cache ends.
//   dim n in {n}..{n+2}
//   input %cache: f32[n, {b}]
//   input %table: f32[{a}, {b}]
//   %past: int = aten::sym_size.int(%cache, 0)
//   %part: f32[{a} - n, {b}] = aten::slice.Tensor(%table, 0, %past)
//   %y: f32[{a} - n, {b}] = aten::add.Tensor(%part, 1.0)
//   return %y
struct ViewStep {
  static constexpr std::string_view kKernel = "view";
  static constexpr bool kIsView = true;
  Operand x;
  OptionalOperand measured;
  Result y;
  std::string form;
  std::vector<int64_t> dims;
  int64_t dim = -1, measured_dim = -1;  // -1: not given
  int64_t start = 0, index = 0, step = 1;

  template <typename Self, typename Fields>
  static void describe(Self& self, Fields& fields) {
    fields.operand("x", self.x, DtypeSet::all(), ValueLayout::any);
    fields.operand("measured", self.measured, DtypeSet::all(), ValueLayout::any);
    fields.leaves_open(self.measured, {0, 1});
    fields.result("y", self.y, DtypeSet::all(), ValueLayout::any);
    fields.text("form", self.form, is_view_form, kRequired);
    fields.integers("dims", self.dims, 0, kMostDimension);
    fields.integer("dim", self.dim, 0, kMostDimension);
    fields.integer("measured", self.measured_dim, 0, kMostDimension);
    fields.integer("start", self.start, INT64_MIN, INT64_MAX);
    fields.integer("index", self.index, INT64_MIN, INT64_MAX);
    fields.integer("step", self.step, 1, INT64_MAX);
  }
};

// The value in whose memory the result of a view lies.
PlanValueId find_viewed(const PlanStep& view);

}  // namespace lissome

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
int find_viewed(const PlanStep& view);

}  // namespace lissome

// The gradient of a table of embeddings; see kernel/move/embedding_gradient.h.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// table [rows, width]: row r = the sum of the rows of dy [..., width] whose index [...] is r, in their order; zeros
// where there are none, and for the index `padding`. An index out of range is a fault that the session throws.
// Case, rows = 4..11 (1000), width = 1..40 (256), a = 1..9 (32), b = 1..5 (64):
//   input %table: f32[{rows}, {width}]
//   input %ids: i64[{a}, {b}]
//   input %dy: f32[{a}, {b}, {width}]
//   %rows: f32[{a}, {b}, {width}] = aten::embedding(%table, %ids)
//   %gradient: f32[{rows}, {width}] = aten::embedding_dense_backward(%dy, %ids, {rows}, 1, false)
//   return %rows, %gradient
struct EmbeddingGradientStep {
  static constexpr std::string_view kKernel = "embedding_gradient";
  Operand dy, indices;
  Result table;
  int64_t padding = -1;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("dy", step.dy, {Dtype::f32});
    fields.operand("indices", step.indices, {Dtype::i64});
    fields.result("table", step.table, {Dtype::f32});
    fields.leaves_open(step.table, {0});
    fields.integer("padding", step.padding, INT64_MIN, INT64_MAX, kRequired);
  }
};

}  // namespace lissome

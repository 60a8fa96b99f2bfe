// Attention: softmax(scale * q k^T + mask) v for each head, without its scores ever lying in memory (Dao et al.,
// arXiv:2205.14135).
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

struct AttentionFields {
  double scale = 1;
  bool causal = false;      // query i sees keys 0..i
  bool heads_last = false;  // results are [batch, rows, heads, size], as models transpose them to next

  template <typename Self, typename Fields>
  static void describe(Self& self, Fields& fields) {
    fields.any_number("scale", self.scale);
    fields.flag("causal", self.causal);
    fields.flag("heads_last", self.heads_last);
  }
};

// Every form reads q [batch, heads, queries, size], k [batch, key heads, keys, size] and v [batch, key heads, keys,
// value size], of any strides but dense rows; heads / key heads query heads share one key head. The mask
// broadcasts to [batch, heads, queries, keys]: it is added in the dtype of q, or bool, of which false excludes.
struct AttentionValues {
  Operand q, k, v;
  OptionalOperand mask;
  AttentionFields form;

  template <typename Self, typename Fields>
  static void describe_operands(Self& step, Fields& fields, Dtype dtype) {
    fields.operand("q", step.q, {dtype}, ValueLayout::dense_rows);
    fields.operand("k", step.k, {dtype}, ValueLayout::dense_rows);
    fields.operand("v", step.v, {dtype}, ValueLayout::dense_rows);
    fields.operand("mask", step.mask, {dtype, Dtype::boolean}, ValueLayout::dense_rows);
    fields.leaves_open(step.mask, {0, 1});
  }
};

// y is [batch, heads, queries, value size]. `logarithms` [batch, heads, queries]: of each query's sum of exp(score),
// which the gradient reads.
struct AttentionForwardValues : AttentionValues {
  Result y;
  OptionalResult logarithms;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields, Dtype dtype) {
    AttentionValues::describe_operands(step, fields, dtype);
    fields.result("y", step.y, {dtype});
    fields.result("logarithms", step.logarithms, {Dtype::f32});
    AttentionFields::describe(step.form, fields);
  }
};

// Case, b = 1..2 (1), heads = 1..3 (8), queries = 1..20 (256), keys = 1..37 (256), size = 1..40 (64):
//   input %q: f32[{b}, {heads}, {queries}, {size}]
//   input %k: f32[{b}, {heads}, {keys}, {size}]
//   input %v: f32[{b}, {heads}, {keys}, {size}]
//   input %mask: f32[{b}, 1, 1, {keys}]
//   %m: f32[{b}, {heads}, {queries}, {keys}] = aten::expand(%mask, [{b}, {heads}, {queries}, {keys}])
//   %y: f32[{b}, {heads}, {queries}, {size}] = aten::scaled_dot_product_attention(%q, %k, %v, %m)
//   return %y
// Case, heads = 1..3 (4), shared = 1..3 (2), keys = 1..37 (256), size = 1..40 (64), values = 1..20 (64):
//   # Causal; several query heads share a key head; values are of another size.
//   input %q: f32[1, {heads*shared}, {keys}, {size}]
//   input %k: f32[1, {heads}, {keys}, {size}]
//   input %v: f32[1, {heads}, {keys}, {values}]
//   %y: f32[1, {heads*shared}, {keys}, {values}] =
//     aten::scaled_dot_product_attention(%q, %k, %v, none, 0.0, true, scale=0.3, enable_gqa=true)
//   return %y
// Case, b = 1..2 (1), heads = 1..3 (8), queries = 1..20 (1), keys = 2..70 (1024), size = 1..40 (64):
//   # Flags that exclude keys; one query at a time reads a cache. Rows lie beside each other by heads.
//   input %q: f32[{b}, {queries}, {heads}, {size}]
//   input %k: f32[{b}, {keys}, {heads}, {size}]
//   input %v: f32[{b}, {keys}, {heads}, {size}]
//   input %mask: f32[{queries}, {keys}]
//   %seen: bool[{queries}, {keys}] = aten::gt.Scalar(%mask, -1.5)
//   %q1: f32[{b}, {heads}, {queries}, {size}] = aten::transpose.int(%q, 1, 2)
//   %k1: f32[{b}, {heads}, {keys}, {size}] = aten::transpose.int(%k, 1, 2)
//   %v1: f32[{b}, {heads}, {keys}, {size}] = aten::transpose.int(%v, 1, 2)
//   %y: f32[{b}, {heads}, {queries}, {size}] = aten::scaled_dot_product_attention(%q1, %k1, %v1, %seen)
//   return %y
struct AttentionStep : AttentionForwardValues {
  static constexpr std::string_view kKernel = "attention";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    AttentionForwardValues::describe(step, fields, Dtype::f32);
  }
};

// Case, b = 1..2 (1), heads = 1..3 (8), rows = 1..37 (256), size = 1..40 (64):
//   input %x: f32[{b}, {heads}, {rows}, {size}]
//   %q: bf16[{b}, {heads}, {rows}, {size}] = aten::to.dtype(%x, bf16)
//   %y: bf16[{b}, {heads}, {rows}, {size}] = aten::scaled_dot_product_attention(%q, %q, %q, none, 0.0, true)
//   return %y
// Case, heads = 1..3 (8), queries = 1..20 (256), keys = 1..37 (256), size = 1..40 (64):
//   # A mask that is added.
//   input %q32: f32[1, {heads}, {queries}, {size}]
//   input %k32: f32[1, {heads}, {keys}, {size}]
//   input %mask32: f32[1, 1, {queries}, {keys}]
//   %q: bf16[1, {heads}, {queries}, {size}] = aten::to.dtype(%q32, bf16)
//   %k: bf16[1, {heads}, {keys}, {size}] = aten::to.dtype(%k32, bf16)
//   %mask: bf16[1, 1, {queries}, {keys}] = aten::to.dtype(%mask32, bf16)
//   %y: bf16[1, {heads}, {queries}, {size}] = aten::scaled_dot_product_attention(%q, %k, %k, %mask)
//   return %y
struct AttentionBf16Step : AttentionForwardValues {
  static constexpr std::string_view kKernel = "attention_bf16";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    AttentionForwardValues::describe(step, fields, Dtype::bf16);
  }
};

// Values are f32; rows of q, k and of the weights, and columns of v, become bytes before they are multiplied, as
// kernel/attention/attention_u8s8.h says.
// Case, heads = 1..3 (8), rows = 1..37 (256), size = 1..70 (64):
//   input %q: f32[1, {heads}, {rows}, {size}]
//   input %k: f32[1, {heads}, {rows}, {size}]
//   input %v: f32[1, {heads}, {rows}, {size}]
//   input %hides: f32[1, 1, {rows}, {rows}]
//   %a: f32[1, {heads}, {rows}, {size}] = lissome::attention_int8(%q, %k, %v, %hides, true, 0.25)
//   return %a
// Case, b = 1..2 (1), heads = 1..3 (8), queries = 1..20 (256), keys = 1..37 (256), size = 1..70 (64):
//   input %q: f32[{b}, {heads}, {queries}, {size}]
//   input %k: f32[{b}, {heads}, {keys}, {size}]
//   input %v: f32[{b}, {heads}, {keys}, {size}]
//   %a: f32[{b}, {heads}, {queries}, {size}] = lissome::attention_int8(%q, %k, %v, none, false, 0.125)
//   return %a
struct AttentionU8S8Step : AttentionValues {
  static constexpr std::string_view kKernel = "attention_u8s8";
  Result y;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    AttentionValues::describe_operands(step, fields, Dtype::f32);
    fields.result("y", step.y, {Dtype::f32});
    AttentionFields::describe(step.form, fields);
  }
};

}  // namespace lissome

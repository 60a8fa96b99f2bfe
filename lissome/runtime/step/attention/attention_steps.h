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

struct AttentionStep : AttentionForwardValues {
  static constexpr std::string_view kKernel = "attention";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    AttentionForwardValues::describe(step, fields, Dtype::f32);
  }
};

struct AttentionBf16Step : AttentionForwardValues {
  static constexpr std::string_view kKernel = "attention_bf16";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    AttentionForwardValues::describe(step, fields, Dtype::bf16);
  }
};

// Values are f32; rows of q, k and of the weights, and columns of v, become bytes before they are multiplied, as
// kernel/attention/attention_u8s8.h says.
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

// One layer of LSTM (Hochreiter and Schmidhuber, 1997) or GRU (Cho et al., arXiv:1406.1078) over a whole sequence, in
// one direction or both, whose inputs have been multiplied already. kernel/recurrent/recurrent.h has the formulas.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

struct RecurrentFields {
  int64_t size = 0;  // units
  int64_t directions = 1;
  bool batch_first = false;  // gates and y are [batch, steps, ...] instead of [steps, batch, ...]

  template <typename Self, typename Fields>
  static void describe(Self& self, Fields& fields) {
    constexpr int64_t kMostUnits = 1 << 20;
    fields.integer("size", self.size, 1, kMostUnits, kRequired);
    fields.integer("directions", self.directions, 1, 2, kRequired);
    fields.flag("batch_first", self.batch_first);
  }
};

// gates [steps, batch, directions * 4 * size] are what the inputs contribute, biases and all. The weight of the states
// is packed, one direction after the other. h0, c0, hn, cn are [directions, batch, size], y is [steps, batch,
// directions * size].
struct LstmValues {
  static constexpr int64_t kGates = 4;
  Operand gates, weight, h0, c0;
  Result y, hn, cn;
  RecurrentFields form;

  template <typename Self, typename Fields>
  static void describe_operands(Self& step, Fields& fields, Dtype weight) {
    fields.operand("gates", step.gates, {Dtype::f32});
    fields.operand("weight", step.weight, {weight});
    fields.no_operand("bias");
    fields.operand("h0", step.h0, {Dtype::f32});
    fields.operand("c0", step.c0, {Dtype::f32});
  }
  template <typename Self, typename Fields>
  static void describe_rest(Self& step, Fields& fields) {
    fields.result("y", step.y, {Dtype::f32});
    fields.result("hn", step.hn, {Dtype::f32});
    fields.result("cn", step.cn, {Dtype::f32});
    RecurrentFields::describe(step.form, fields);
  }
};

// Shapes are as in LstmValues, with 3 gates. `bias` [directions * 3 * size] belongs to the product with the states.
struct GruValues {
  static constexpr int64_t kGates = 3;
  Operand gates, weight;
  OptionalOperand bias;
  Operand h0;
  Result y, hn;
  RecurrentFields form;

  template <typename Self, typename Fields>
  static void describe_operands(Self& step, Fields& fields, Dtype weight) {
    fields.operand("gates", step.gates, {Dtype::f32});
    fields.operand("weight", step.weight, {weight});
    fields.operand("bias", step.bias, {Dtype::f32});
    fields.operand("h0", step.h0, {Dtype::f32});
    fields.no_operand("c0");
  }
  template <typename Self, typename Fields>
  static void describe_rest(Self& step, Fields& fields) {
    fields.result("y", step.y, {Dtype::f32});
    fields.result("hn", step.hn, {Dtype::f32});
    RecurrentFields::describe(step.form, fields);
  }
};

// Weights of f32, or of bf16, which are multiplied with states rounded to bf16.
template <typename Values, Dtype Weight>
struct FloatRecurrentStep : Values {
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    Values::describe_operands(step, fields, Weight);
    Values::describe_rest(step, fields);
  }
};

// Weights of s8, which are multiplied with states as u8, a scale and zero point a row. `scales` and `weight_sums` are
// [directions * gates * size].
template <typename Values>
struct U8S8RecurrentStep : Values {
  Operand scales, weight_sums;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    Values::describe_operands(step, fields, Dtype::i8);
    fields.operand("scales", step.scales, {Dtype::f32});
    fields.operand("weight_sums", step.weight_sums, {Dtype::i32});
    Values::describe_rest(step, fields);
  }
};

// Case, steps = 1..5 (32), batch = 1..3 (8), inputs = 1..20 (128), size = 1..20 (128):
//   input %x: f32[{steps}, {batch}, {inputs}]
//   input %h: f32[1, {batch}, {size}]
//   input %c: f32[1, {batch}, {size}]
//   parameter @a: f32[{4*size}, {inputs}]
//   parameter @b: f32[{4*size}, {size}]
//   parameter @bias: f32[{4*size}]
//   %y: f32[{steps}, {batch}, {size}], %hn: f32[1, {batch}, {size}], %cn: f32[1, {batch}, {size}] =
//     aten::lstm.input(%x, [%h, %c], [@a, @b, @bias, @bias], true, 1, 0.0, false, false, false)
//   return %y, %hn, %cn
// Case, steps = 1..5 (16), batch = 1..3 (4), inputs = 1..20 (128), size = 1..20 (128):
//   # Two layers in both directions, batches first, without biases.
//   input %x: f32[{batch}, {steps}, {inputs}]
//   input %h: f32[4, {batch}, {size}]
//   input %c: f32[4, {batch}, {size}]
//   parameter @a: f32[{4*size}, {inputs}]
//   parameter @b: f32[{4*size}, {size}]
//   parameter @d: f32[{4*size}, {2*size}]
//   %y: f32[{batch}, {steps}, {2*size}], %hn: f32[4, {batch}, {size}], %cn: f32[4, {batch}, {size}] =
//     aten::lstm.input(%x, [%h, %c], [@a, @b, @a, @b, @d, @b, @d, @b], false, 2, 0.0, false, true, true)
//   return %y, %hn, %cn
struct LstmStep : FloatRecurrentStep<LstmValues, Dtype::f32> {
  static constexpr std::string_view kKernel = "lstm";
};
// Case, steps = 1..5 (32), batch = 1..3 (8), size = 1..20 (128):
//   # In both directions.
//   input %x: f32[{steps}, {batch}, {8*size}]
//   input %h: f32[2, {batch}, {size}]
//   input %c: f32[2, {batch}, {size}]
//   parameter @w: bf16[2, {4*size}, {size}]
//   %y: f32[{steps}, {batch}, {2*size}], %hn: f32[2, {batch}, {size}], %cn: f32[2, {batch}, {size}] =
//     lissome::lstm_layer(%x, @w, none, %h, %c, false)
//   return %y, %hn, %cn
struct LstmBf16Step : FloatRecurrentStep<LstmValues, Dtype::bf16> {
  static constexpr std::string_view kKernel = "lstm_bf16";
};
// Case, steps = 1..5 (32), batch = 1..3 (8), size = 1..20 (128):
//   input %x: f32[{steps}, {batch}, {4*size}]
//   input %h: f32[1, {batch}, {size}]
//   input %c: f32[1, {batch}, {size}]
//   parameter @w: i8[1, {4*size}, {size}]
//   constant @s: f32[1, {4*size}] = 0.01
//   %y: f32[{steps}, {batch}, {size}], %hn: f32[1, {batch}, {size}], %cn: f32[1, {batch}, {size}] =
//     lissome::lstm_layer(%x, @w, @s, %h, %c, false)
//   return %y, %hn, %cn
struct LstmU8S8Step : U8S8RecurrentStep<LstmValues> {
  static constexpr std::string_view kKernel = "lstm_u8s8";
};
// Case, steps = 1..5 (32), batch = 1..3 (8), inputs = 1..20 (128), size = 1..20 (128):
//   input %x: f32[{steps}, {batch}, {inputs}]
//   input %h: f32[1, {batch}, {size}]
//   parameter @a: f32[{3*size}, {inputs}]
//   parameter @b: f32[{3*size}, {size}]
//   parameter @bias: f32[{3*size}]
//   %y: f32[{steps}, {batch}, {size}], %hn: f32[1, {batch}, {size}] =
//     aten::gru.input(%x, %h, [@a, @b, @bias, @bias], true, 1, 0.0, false, false, false)
//   return %y, %hn
// Case, steps = 1..5 (32), batch = 1..3 (8), size = 1..20 (128):
//   # In both directions, batches first, the inputs multiplied already.
//   input %x: f32[{batch}, {steps}, {6*size}]
//   input %h: f32[2, {batch}, {size}]
//   parameter @w: f32[2, {3*size}, {size}]
//   %y: f32[{batch}, {steps}, {2*size}], %hn: f32[2, {batch}, {size}] =
//     lissome::gru_layer(%x, @w, none, none, %h, true)
//   return %y, %hn
struct GruStep : FloatRecurrentStep<GruValues, Dtype::f32> {
  static constexpr std::string_view kKernel = "gru";
};
// Case, steps = 1..5 (32), batch = 1..3 (8), size = 1..20 (128):
//   input %g: f32[{steps}, {batch}, {3*size}]
//   input %k: f32[1, {batch}, {size}]
//   parameter @v: bf16[1, {3*size}, {size}]
//   parameter @b: f32[{3*size}]
//   %z: f32[{steps}, {batch}, {size}], %kn: f32[1, {batch}, {size}] =
//     lissome::gru_layer(%g, @v, none, @b, %k, false)
//   return %z, %kn
struct GruBf16Step : FloatRecurrentStep<GruValues, Dtype::bf16> {
  static constexpr std::string_view kKernel = "gru_bf16";
};
// Case, steps = 1..5 (48), batch = 1..3 (8), size = 1..20 (128):
//   input %g: f32[{steps}, {batch}, {3*size}]
//   input %k: f32[1, {batch}, {size}]
//   parameter @v: i8[1, {3*size}, {size}]
//   constant @s: f32[1, {3*size}] = 0.01
//   %z: f32[{steps}, {batch}, {size}], %kn: f32[1, {batch}, {size}] =
//     lissome::gru_layer(%g, @v, @s, none, %k, false)
//   return %z, %kn
struct GruU8S8Step : U8S8RecurrentStep<GruValues> {
  static constexpr std::string_view kKernel = "gru_u8s8";
};

}  // namespace lissome

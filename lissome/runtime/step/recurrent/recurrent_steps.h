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

struct LstmStep : FloatRecurrentStep<LstmValues, Dtype::f32> {
  static constexpr std::string_view kKernel = "lstm";
};
struct LstmBf16Step : FloatRecurrentStep<LstmValues, Dtype::bf16> {
  static constexpr std::string_view kKernel = "lstm_bf16";
};
struct LstmU8S8Step : U8S8RecurrentStep<LstmValues> {
  static constexpr std::string_view kKernel = "lstm_u8s8";
};
struct GruStep : FloatRecurrentStep<GruValues, Dtype::f32> {
  static constexpr std::string_view kKernel = "gru";
};
struct GruBf16Step : FloatRecurrentStep<GruValues, Dtype::bf16> {
  static constexpr std::string_view kKernel = "gru_bf16";
};
struct GruU8S8Step : U8S8RecurrentStep<GruValues> {
  static constexpr std::string_view kKernel = "gru_u8s8";
};

}  // namespace lissome

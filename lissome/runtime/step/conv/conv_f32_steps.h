// Convolutions in f32 and the packing of their weight, where it changes from run to run; see kernel/conv/conv_f32.h.
#pragma once

#include "lissome/runtime/step/conv/conv_values.h"

namespace lissome {

// Any window. The weight is packed by pack_conv_f32; `zeros` [in channels] is what is read outside of x.
struct ConvF32Step : ConvValues {
  static constexpr std::string_view kKernel = "conv_f32";
  Operand zeros;
  bool finite_weight = false;  // it holds neither infinity nor NaN: products may run on tile registers
  bool planes = false;         // x is in row order; one group

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    ConvValues::describe(step, fields, {{Dtype::f32}, {Dtype::f32}, {Dtype::f32}, ValueLayout::dense});
    fields.operand("zeros", step.zeros, {Dtype::f32});
    fields.flag("finite_weight", step.finite_weight);
    fields.flag("planes", step.planes);
  }
};

inline constexpr std::string_view kPackForward = "forward", kPackData = "data";
inline bool is_conv_packing(std::string_view word) { return word == kPackForward || word == kPackData; }

// The weight [out channels, in channels / groups, (height,) width] as conv_f32 reads it, or for the gradient of the
// data as conv_data_f32 does; see ConvPacking.
struct PackConvF32Step {
  static constexpr std::string_view kKernel = "pack_conv_f32";
  Operand weight;
  Result packed;
  WindowFields window;
  std::string packing{kPackForward};

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("weight", step.weight, {Dtype::f32});
    fields.result("packed", step.packed, {Dtype::f32});
    WindowFields::describe(step.window, fields);
    fields.text("packing", step.packing, is_conv_packing);
  }
};

}  // namespace lissome

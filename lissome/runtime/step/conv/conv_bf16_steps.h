// Convolutions in bf16 and the packing of their weight, where it changes from run to run; see kernel/conv/conv_bf16.h.
#pragma once

#include "lissome/runtime/step/conv/conv_values.h"

namespace lissome {

// Any window, plain or transposed: then it slides over y. The weight is packed by pack_conv_bf16.
struct ConvBf16Step : ConvValues {
  static constexpr std::string_view kKernel = "conv_bf16";
  bool transposed = false;
  bool planes = false;  // x is in row order, bf16 or f32; one group, few channels, not transposed

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    ConvValues::describe(step, fields, {{Dtype::bf16, Dtype::f32}, {Dtype::bf16}, {Dtype::bf16}, ValueLayout::dense});
    fields.flag("transposed", step.transposed);
    fields.flag("planes", step.planes);
  }
};

// The weight [out channels, in channels / groups, (height,) width], transposed [in channels, out channels / groups,
// ...], as conv_bf16 reads it. One in f32 is rounded.
struct PackConvBf16Step {
  static constexpr std::string_view kKernel = "pack_conv_bf16";
  Operand weight;
  Result packed;
  WindowFields window;
  bool transposed = false;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("weight", step.weight, {Dtype::bf16, Dtype::f32});
    fields.result("packed", step.packed, {Dtype::bf16});
    WindowFields::describe(step.window, fields);
    fields.flag("transposed", step.transposed);
  }
};

}  // namespace lissome

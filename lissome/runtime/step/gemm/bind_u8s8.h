// What the binders of products of u8 and s8 share.
#pragma once

#include <cfloat>

#include "lissome/kernel.h"
#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// Of products of int8, roughly, against those of f32.
inline double int8_product_speed(int64_t rows) { return can_run(Isa::amx) && rows > 4 ? 24 : 4; }

// What surrounds the products: zero points, scales, the activation. Checks the sizes of what is read once an output.
template <typename Step, typename Call>
void read_output(const StepBinder& binder, const Step& step, Call& call, const PlacedValue& y, int64_t outputs) {
  const QuantizedFields& q = step.quantized;
  call.x_zero = static_cast<int32_t>(q.x_zero);
  call.out_inverse = static_cast<float>(q.out_inverse);
  call.out_zero = static_cast<int32_t>(q.out_zero);
  call.residual_scale = static_cast<float>(q.residual_scale);
  call.residual_zero = static_cast<int32_t>(q.residual_zero);
  call.epilogue = step.activation.epilogue();
  // Kernels run with denormals taken for zero: one here would make y u8 for the binder and f32 for the kernel.
  const bool quantized = call.out_inverse != 0;
  binder.require(!quantized || call.out_inverse >= FLT_MIN, quote("out_inverse"), " is the denormal ",
                 call.out_inverse);
  binder.require((y.dtype == Dtype::u8) == quantized, "y is ", dtype_name(y.dtype), ", ", quote("out_inverse"), " ",
                 call.out_inverse);
  call.narrows = y.dtype == Dtype::bf16;
  binder.require_sizes(binder.value(step.multiplier), {outputs});
  binder.require_sizes(binder.value(step.weight_sums), {outputs});
  if (step.bias) binder.require_sizes(binder.value(step.bias), {outputs});
  if constexpr (requires { step.residual; }) {
    if (step.residual) binder.require_sizes(binder.value(step.residual), y.sizes);
  }
}

template <typename Call, typename Step>
void point_output(StepBinder& binder, const Step& step) {
  binder.point(static_cast<const float * Call::*>(&Call::multiplier), step.multiplier);
  binder.point(static_cast<const int32_t * Call::*>(&Call::weight_sums), step.weight_sums);
  if (step.bias) binder.point(static_cast<const float * Call::*>(&Call::bias), step.bias);
  if constexpr (requires { step.residual; }) {
    if (step.residual) {
      switch (binder.value(step.residual).dtype) {
        case Dtype::bf16:
          binder.point(static_cast<const uint16_t * Call::*>(&Call::residual_bf16), step.residual);
          break;
        case Dtype::u8: binder.point(static_cast<const uint8_t * Call::*>(&Call::residual_u8), step.residual); break;
        default: binder.point(static_cast<const float * Call::*>(&Call::residual), step.residual);
      }
    }
  }
  binder.point(static_cast<void * Call::*>(&Call::y), step.y);
}

}  // namespace lissome

#include "lissome/runtime/step/gemm/linear_steps.h"

#include "lissome/runtime/step/gemm/split_bf16x3.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

constexpr double kTileSpeed = 8;  // of products on tile registers, roughly, against those of f32

// Rows, inputs and outputs, strides and what follows the sums; sizes of x and y are checked.
template <typename Call>
void read_linear(const StepBinder& binder, const LinearValues& step, Call& call) {
  const PlacedValue& x = binder.value(step.x);
  binder.require(!x.sizes.empty(), "x has no dimensions");
  call.inputs = x.sizes.back();
  call.outputs = step.outputs;
  call.rows = call.inputs > 0 ? x.elements() / call.inputs : count_elements(Sizes(x.sizes.begin(), x.sizes.end() - 1));
  Sizes y_sizes = x.sizes;
  y_sizes.back() = call.outputs;
  binder.require_sizes(binder.value(step.y), y_sizes);
  call.x_stride = call.inputs;
  call.y_stride = call.residual_stride = call.outputs;
  call.epilogue = step.activation.epilogue();
  call.residual_place = residual_place(step.residual, step.residual_last);
}

// Once the call is set.
template <typename Call>
void point_linear_values(StepBinder& binder, const LinearValues& step) {
  binder.point(&Call::x, step.x);
  binder.point(&Call::weight, step.weight);
  binder.point(&Call::y, step.y);
  if (step.bias) {
    binder.require_sizes(binder.value(step.bias), {step.outputs});
    binder.point(&Call::bias, step.bias);
  }
  if (step.residual) {
    binder.require_sizes(binder.value(step.residual), binder.value(step.y).sizes);
    binder.point(&Call::residual, step.residual);
  }
}

void bind_linear_f32(StepBinder& binder, const LinearF32Step& step) {
  LinearF32Call call;
  read_linear(binder, step, call);
  call.streams = is_intel();
  binder.require_product({call.outputs + kLinearPanel, call.inputs, 4});
  binder.require_sizes(binder.value(step.weight), {packed_linear_f32_size(call.outputs, call.inputs)});
  const double rows = static_cast<double>(call.rows), inputs = static_cast<double>(call.inputs),
               outputs = static_cast<double>(call.outputs);
  binder.set_products(rows * inputs * outputs);
  binder.set_work(rows * inputs * outputs, 4 * (rows * (inputs + outputs) + inputs * outputs));
  binder.set_call("linear_f32", call);
  const int64_t scratch = may_split_bf16x3(step.finite_weight, "linear_f32") ? linear_f32_scratch(call) : 0;
  if (scratch > 0) binder.point_scratch(&LinearF32Call::scratch, {binder.parts(), scratch, 4});
  binder.point_run(&LinearF32Call::run);
  point_linear_values<LinearF32Call>(binder, step);
}

void bind_linear_bf16(StepBinder& binder, const LinearBf16Step& step) {
  LinearBf16Call call;
  read_linear(binder, step, call);
  binder.require_product({call.outputs + kBf16Panel, call.inputs + kBf16Step, 2});
  binder.require_sizes(binder.value(step.weight), {packed_linear_bf16_size(call.outputs, call.inputs)});
  const double speed = can_run(Isa::amx) ? kTileSpeed : 1;
  binder.set_call("linear_bf16", call);
  point_linear_values<LinearBf16Call>(binder, step);
  const double rows = static_cast<double>(call.rows), inputs = static_cast<double>(call.inputs),
               outputs = static_cast<double>(call.outputs);
  binder.set_products(rows * inputs * outputs, Dtype::bf16);
  binder.set_work(rows * inputs * outputs / speed, 2 * (rows * (inputs + outputs) + inputs * outputs));
  binder.point_scratch(&LinearBf16Call::scratch, {binder.parts(), linear_bf16_scratch(call.rows, call.inputs)});
}

}  // namespace

std::vector<StepRow> list_linear_steps() {
  return {declare_step<LinearF32Step, bind_linear_f32>(), declare_step<LinearBf16Step, bind_linear_bf16>()};
}

}  // namespace lissome

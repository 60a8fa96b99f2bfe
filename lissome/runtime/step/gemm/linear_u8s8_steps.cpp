#include "lissome/runtime/step/gemm/linear_u8s8_steps.h"

#include "lissome/runtime/step/gemm/bind_u8s8.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

void bind_quantize_rows(StepBinder& binder, const QuantizeRowsStep& step) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  binder.require(!x.sizes.empty() && x.sizes.back() > 0, "x has no rows");
  binder.require_sizes(y, x.sizes);
  QuantizeRowsCall call;
  call.inputs = call.x_stride = call.y_stride = x.sizes.back();
  call.rows = x.elements() / call.inputs;
  binder.require(binder.value(step.scales).elements() == call.rows && binder.value(step.zeros).elements() == call.rows,
                 "there must be one scale and zero point a row");
  if (step.factors) {
    binder.require_dtype(binder.value(step.factors), x.dtype);
    binder.require_sizes(binder.value(step.factors), {call.inputs});
  }
  binder.set_call("quantize_rows", call);
  if (x.dtype == Dtype::bf16) {
    binder.point(&QuantizeRowsCall::x_bf16, x);
    if (step.factors) binder.point(&QuantizeRowsCall::factors_bf16, step.factors);
  } else {
    binder.point(&QuantizeRowsCall::x, step.x);
    if (step.factors) binder.point(&QuantizeRowsCall::factors, step.factors);
  }
  binder.point(&QuantizeRowsCall::y, step.y);
  binder.point(&QuantizeRowsCall::scales, step.scales);
  binder.point(&QuantizeRowsCall::zeros, step.zeros);
  binder.set_work(0, 9.0 * static_cast<double>(x.elements()));
}

void bind_linear_u8s8(StepBinder& binder, const LinearU8S8Step& step) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  binder.require(!x.sizes.empty() && x.sizes.back() > 0, "x has no inputs");
  LinearU8S8Call call;
  call.inputs = call.x_stride = x.sizes.back();
  call.outputs = call.y_stride = call.residual_stride = step.outputs;
  binder.require_product({call.outputs + kLinearPanel, call.inputs + kLinearPanel});
  call.rows = x.elements() / call.inputs;
  binder.require_sizes(binder.value(step.weight), {packed_u8s8_size(call.outputs, call.inputs, {})});
  Sizes sizes = x.sizes;
  sizes.back() = call.outputs;
  binder.require_sizes(y, sizes);
  read_output(binder, step, call, y, call.outputs);
  binder.require(bool(step.row_scales) == bool(step.row_zeros), "scales and zero points of rows come together");
  for (const OptionalOperand& numbers : {step.row_scales, step.row_zeros}) {
    binder.require(!numbers || binder.value(numbers).elements() == call.rows,
                   "there must be one scale and zero point a row");
  }
  binder.set_call("linear_u8s8", call);
  binder.point(&LinearU8S8Call::x, step.x);
  binder.point(&LinearU8S8Call::weight, step.weight);
  point_output<LinearU8S8Call>(binder, step);
  if (step.row_scales) {
    binder.point(&LinearU8S8Call::row_scales, step.row_scales);
    binder.point(&LinearU8S8Call::row_zeros, step.row_zeros);
  }
  const auto rows = static_cast<double>(call.rows), inputs = static_cast<double>(call.inputs),
             outputs = static_cast<double>(call.outputs);
  binder.set_products(rows * inputs * outputs, Dtype::u8);
  binder.set_work(rows * inputs * outputs / int8_product_speed(call.rows),
                  rows * (inputs + 4 * outputs) + inputs * outputs);
}

}  // namespace

std::vector<StepRow> list_linear_u8s8_steps() {
  return {declare_step<QuantizeRowsStep, bind_quantize_rows>(), declare_step<LinearU8S8Step, bind_linear_u8s8>()};
}

}  // namespace lissome

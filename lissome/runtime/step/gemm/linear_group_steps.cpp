#include "lissome/runtime/step/gemm/linear_group_steps.h"

#include "lissome/kernel/gemm/linear_group.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

constexpr double kGroupSpeed = 4;  // of products of bytes, roughly, against those of f32

// Sizes of what there is once a group of a row.
Sizes group_sizes(const StepBinder& binder, const PlacedValue& x) {
  binder.require(!x.sizes.empty() && x.sizes.back() > 0 && x.sizes.back() % kWeightGroup == 0,
                 "the inputs are no multiple of ", kWeightGroup);
  Sizes sizes = x.sizes;
  sizes.back() /= kWeightGroup;
  return sizes;
}

void bind_quantize_groups(StepBinder& binder, const QuantizeGroupsStep& step) {
  const PlacedValue& x = binder.value(step.x);
  const Sizes groups = group_sizes(binder, x);
  binder.require_sizes(binder.value(step.y), x.sizes);
  binder.require_sizes(binder.value(step.scales), groups);
  binder.require_sizes(binder.value(step.sums), groups);
  QuantizeGroupsCall call;
  call.inputs = x.sizes.back();
  call.rows = x.elements() / call.inputs;
  binder.set_call("quantize_groups", call);
  binder.point(&QuantizeGroupsCall::x, step.x);
  binder.point(&QuantizeGroupsCall::y, step.y);
  binder.point(&QuantizeGroupsCall::scales, step.scales);
  binder.point(&QuantizeGroupsCall::sums, step.sums);
  binder.set_work(0, 5.0 * static_cast<double>(x.elements()));
}

void bind_linear_group(StepBinder& binder, const LinearGroupStep& step) {
  const PlacedValue& x = binder.value(step.x);
  const Sizes groups = group_sizes(binder, x);
  binder.require(step.bits == 4 || step.bits == 8, "bits is ", step.bits, "; 4 and 8 are allowed");
  binder.require_sizes(binder.value(step.x_scales), groups);
  binder.require_sizes(binder.value(step.x_sums), groups);
  LinearGroupCall call;
  call.inputs = x.sizes.back();
  call.outputs = step.outputs;
  call.bits = static_cast<int>(step.bits);
  call.epilogue = step.activation.epilogue();
  binder.require_product({call.outputs + kGroupBlock, call.inputs});
  call.rows = x.elements() / call.inputs;
  binder.require_sizes(binder.value(step.weight), {packed_group_size(call.outputs, call.inputs, call.bits)});
  binder.require_sizes(binder.value(step.weight_scales), {packed_group_scales(call.outputs, call.inputs)});
  Sizes sizes = x.sizes;
  sizes.back() = call.outputs;
  binder.require_sizes(binder.value(step.y), sizes);
  if (step.bias) binder.require_sizes(binder.value(step.bias), {call.outputs});
  if (step.residual) binder.require_sizes(binder.value(step.residual), sizes);
  binder.set_call("linear_group", call);
  binder.point(&LinearGroupCall::x, step.x);
  binder.point(&LinearGroupCall::x_scales, step.x_scales);
  binder.point(&LinearGroupCall::x_sums, step.x_sums);
  binder.point(&LinearGroupCall::weight, step.weight);
  binder.point(&LinearGroupCall::weight_scales, step.weight_scales);
  if (step.bias) binder.point(&LinearGroupCall::bias, step.bias);
  if (step.residual) binder.point(&LinearGroupCall::residual, step.residual);
  binder.point(&LinearGroupCall::y, step.y);
  const auto rows = static_cast<double>(call.rows), inputs = static_cast<double>(call.inputs),
             outputs = static_cast<double>(call.outputs);
  binder.set_products(rows * inputs * outputs, Dtype::u8);
  binder.set_work(rows * inputs * outputs / kGroupSpeed,
                  rows * (inputs + 4 * outputs) + inputs * outputs * (static_cast<double>(call.bits) / 8 + 1.0 / 16));
}

}  // namespace

std::vector<StepRow> list_linear_group_steps() {
  return {declare_step<QuantizeGroupsStep, bind_quantize_groups>(), declare_step<LinearGroupStep, bind_linear_group>()};
}

}  // namespace lissome

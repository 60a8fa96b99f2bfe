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

// The form of a weight [outputs, inputs], whose packed sizes are checked.
template <typename Call>
void read_groups(const StepBinder& binder, const GroupFields& groups, const PlacedValue& weight,
                 const PlacedValue& scales, int64_t outputs, int64_t inputs, Call& call) {
  binder.require(groups.bits == 4 || groups.bits == 8, "bits is ", groups.bits, "; 4 and 8 are allowed");
  const int64_t together = groups.scale_inputs;
  binder.require((together == 32 || together == 64 || together == 128) && inputs % together == 0, "scale_inputs is ",
                 together, "; 32, 64 and 128 are allowed, where they divide the inputs");
  binder.require_product({outputs + kGroupBlock, inputs});
  call.bits = static_cast<int>(groups.bits);
  call.scale_inputs = together;
  binder.require_sizes(weight, {packed_group_size(outputs, inputs, call.bits)});
  binder.require_sizes(scales, {packed_group_scales(outputs, inputs, together)});
}

double bytes_of_group_weight(double numbers, const GroupFields& groups) {
  return numbers * (static_cast<double>(groups.bits) / 8 + 2 / static_cast<double>(groups.scale_inputs));
}

void bind_linear_group(StepBinder& binder, const LinearGroupStep& step) {
  const PlacedValue& x = binder.value(step.x);
  const Sizes groups = group_sizes(binder, x);
  binder.require_sizes(binder.value(step.x_scales), groups);
  binder.require_sizes(binder.value(step.x_sums), groups);
  LinearGroupCall call;
  call.inputs = x.sizes.back();
  call.outputs = step.outputs;
  call.epilogue = step.activation.epilogue();
  read_groups(binder, step.groups, binder.value(step.weight), binder.value(step.weight_scales), call.outputs,
              call.inputs, call);
  call.rows = x.elements() / call.inputs;
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
                  rows * (inputs + 4 * outputs) + bytes_of_group_weight(inputs * outputs, step.groups));
}

void bind_gather_groups(StepBinder& binder, const GatherGroupsStep& step) {
  const PlacedValue& indices = binder.value(step.indices);
  const PlacedValue& y = binder.value(step.y);
  binder.require(!y.sizes.empty() && y.sizes.back() > 0 && y.sizes.back() % kWeightGroup == 0,
                 "the columns are no multiple of ", kWeightGroup);
  GatherGroupsCall call;
  call.rows = step.rows, call.columns = y.sizes.back(), call.count = indices.elements();
  read_groups(binder, step.groups, binder.value(step.table), binder.value(step.scales), call.rows, call.columns, call);
  Sizes sizes = indices.sizes;
  sizes.push_back(call.columns);
  binder.require_sizes(y, sizes);
  call.narrow_indices = indices.dtype == Dtype::i32;
  call.fault_code = binder.fault_code();
  binder.set_call("gather_groups", call);
  binder.point(&GatherGroupsCall::table, step.table);
  binder.point(&GatherGroupsCall::scales, step.scales);
  binder.point(&GatherGroupsCall::indices, step.indices);
  binder.point(&GatherGroupsCall::y, step.y);
  binder.point_fault(&GatherGroupsCall::fault);
  const auto numbers = static_cast<double>(y.elements());
  binder.set_work(2 * numbers, 4 * numbers);
  // Of the table only the chosen rows are touched.
  binder.subtract_bytes(packed_group_size(call.rows, call.columns, call.bits) +
                        2 * packed_group_scales(call.rows, call.columns, call.scale_inputs) -
                        static_cast<int64_t>(bytes_of_group_weight(numbers, step.groups)));
}

}  // namespace

std::vector<StepRow> list_linear_group_steps() {
  return {declare_step<QuantizeGroupsStep, bind_quantize_groups>(), declare_step<LinearGroupStep, bind_linear_group>(),
          declare_step<GatherGroupsStep, bind_gather_groups>()};
}

}  // namespace lissome

// linear_f32: operands x, packed weight, bias or -1, residual or -1. Leading dimensions of x are rows. Attribute
// "finite_weight": 1 where the weight holds neither infinity nor NaN.
#include "lissome/runtime/step/step_rows.h"
#include "lissome/runtime/step/step_rules.h"

namespace lissome {
namespace {

constexpr ValueRule kLinearOperands[] = {
    {"x", {Dtype::f32}},
    {"weight", {Dtype::f32}},
    {"bias", {Dtype::f32}, ValueLayout::row_major, Presence::optional},
    {"residual", {Dtype::f32}, ValueLayout::row_major, Presence::optional},
};
constexpr ValueRule kLinearResults[] = {{"y", {Dtype::f32}}};
constexpr AttributeRule kLinearOwn[] = {flag_rule("finite_weight")};
constexpr auto kLinearAttributes = join_rules(kOutputsRules, kEpilogueRules, kResidualRules, kLinearOwn);
constexpr StepSchema kLinearSchemas[] = {{"linear_f32", kLinearOperands, kLinearResults, kLinearAttributes}};

}  // namespace

std::span<const StepSchema> linear_schemas() { return kLinearSchemas; }

Epilogue read_epilogue(const StepBinder& binder, const std::string& prefix) {
  const std::string name = binder.attributes().text(prefix + "activation", "none");
  return {parse_activation(name).value(), static_cast<float>(binder.attributes().number(prefix + "alpha", 0)),
          static_cast<float>(binder.attributes().number(prefix + "beta", 0))};
}

ResidualPlace read_residual_place(const StepBinder& binder, size_t operand) {
  if (!binder.has_operand(operand)) return ResidualPlace::none;
  return binder.attributes().integer("residual_last", 0) ? ResidualPlace::after_activation
                                                         : ResidualPlace::before_activation;
}

bool may_split_bf16x3(const StepBinder& binder, std::string_view kernel) {
  return binder.attributes().integer("finite_weight", 0) != 0 && find_kernel(kernel).isa == Isa::amx;
}

void bind_linear_f32(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& weight = binder.operand(1);
  const PlacedValue& y = binder.result();
  LinearF32Call call;
  read_linear(binder, call);
  call.streams = is_intel();
  binder.require_product({call.outputs + kLinearPanel, call.inputs, 4});
  binder.require_sizes(weight, {packed_linear_f32_size(call.outputs, call.inputs)});
  const double rows = static_cast<double>(call.rows), inputs = static_cast<double>(call.inputs),
               outputs = static_cast<double>(call.outputs);
  binder.set_products(rows * inputs * outputs);
  binder.set_work(rows * inputs * outputs, 4 * (rows * (inputs + outputs) + inputs * outputs));
  binder.set_call("linear_f32", call);
  const int64_t scratch = may_split_bf16x3(binder, "linear_f32") ? linear_f32_scratch(call) : 0;
  if (scratch > 0) binder.point_scratch(&LinearF32Call::scratch, {binder.parts(), scratch, 4});
  binder.point_run(&LinearF32Call::run);
  binder.point(&LinearF32Call::x, x);
  binder.point(&LinearF32Call::weight, weight);
  binder.point(&LinearF32Call::y, y);
  if (binder.has_operand(2)) {
    binder.require_sizes(binder.operand(2), {call.outputs});
    binder.point(&LinearF32Call::bias, binder.operand(2));
  }
  if (binder.has_operand(3)) {
    binder.require_sizes(binder.operand(3), y.sizes);
    binder.point(&LinearF32Call::residual, binder.operand(3));
  }
}

}  // namespace lissome

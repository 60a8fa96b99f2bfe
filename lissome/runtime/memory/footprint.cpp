// See footprint.h.
#include "lissome/runtime/memory/footprint.h"

#include "lissome/runtime/plan/input_check.h"
#include "lissome/runtime/session/binding.h"

namespace lissome {
namespace {

std::vector<PlanValueId> list_in_place(const Plan& plan, const PlanStep& step, const Binding& binding) {
  std::vector<PlanValueId> operands;
  if (step.kernel == kReferenceStep || step.results.size() != 1) return operands;
  const PlacedValue& result = binding.value(step.results[0]);
  const auto owns = [&](PlanValueId id) {
    return plan.value(id).storage == Storage::arena && binding.in_arena(block_of(id));
  };
  if (!owns(step.results[0])) return operands;
  for (size_t i = 0; i < step.operands.size() && i < 32; ++i) {
    const PlanValueId operand = step.operands[i];
    if ((find_step_row(step.kernel).in_place >> i & 1) == 0 || !is_value(operand) || !owns(operand)) continue;
    const PlacedValue& value = binding.value(operand);
    const bool same = value.dtype == result.dtype && value.sizes == result.sizes && value.strides == result.strides;
    if (same) operands.push_back(operand);
  }
  return operands;
}

}  // namespace

Footprint find_footprint(const Plan& plan, std::span<const Sizes> inputs, int threads) {
  LISSOME_CHECK(inputs.size() == plan.inputs.size());
  std::vector<TensorView> views;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const PlanValue& value = plan.value(plan.inputs[i].value);
    views.push_back({value.dtype, inputs[i], dense_strides(inputs[i], Format::row_major), nullptr});
  }
  const Binding binding(plan, match_inputs(plan, views), threads);
  Footprint footprint{binding.arena_bytes(),
                      std::vector<int64_t>(plan.values.size(), 0),
                      std::vector<int64_t>(plan.steps.size(), 0),
                      {}};
  for (const PlanValueId id : plan.value_ids()) {
    const PlacedValue& value = binding.value(id);
    if (plan.value(id).storage != Storage::arena || value.block != block_of(id) || !binding.in_arena(block_of(id)))
      continue;
    footprint.value_bytes[static_cast<size_t>(id)] = value.elements() * item_size(value.dtype);
  }
  for (const BindingParts::Scratch& scratch : binding.scratch()) {
    const int step = binding.steps()[static_cast<size_t>(scratch.step)].plan_step;
    footprint.scratch_bytes[static_cast<size_t>(step)] += scratch.bytes;
  }
  for (const PlanStep& step : plan.steps) footprint.in_place.push_back(list_in_place(plan, step, binding));
  return footprint;
}

}  // namespace lissome

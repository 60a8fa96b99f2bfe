// See footprint.h.
#include "lissome/runtime/footprint.h"

#include "lissome/runtime/binding.h"
#include "lissome/runtime/input_check.h"

namespace lissome {

Footprint find_footprint(const Plan& plan, std::span<const Sizes> inputs, int threads) {
  LISSOME_CHECK(inputs.size() == plan.inputs.size());
  std::vector<TensorView> views;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const PlanValue& value = plan.values[static_cast<size_t>(plan.inputs[i].value)];
    views.push_back({value.dtype, inputs[i], dense_strides(inputs[i], Format::row_major), nullptr});
  }
  const Binding binding(plan, match_inputs(plan, views), threads);
  Footprint footprint{binding.arena_bytes(), std::vector<int64_t>(plan.values.size(), 0),
                      std::vector<int64_t>(plan.steps.size(), 0)};
  for (size_t i = 0; i < plan.values.size(); ++i) {
    const int id = static_cast<int>(i);
    const PlacedValue& value = binding.value(id);
    if (plan.values[i].storage != Storage::arena || value.block != id || !binding.in_arena(id)) continue;
    footprint.value_bytes[i] = value.elements() * item_size(value.dtype);
  }
  for (const BindingParts::Scratch& scratch : binding.scratch()) {
    const int step = binding.steps()[static_cast<size_t>(scratch.step)].plan_step;
    footprint.scratch_bytes[static_cast<size_t>(step)] += scratch.bytes;
  }
  return footprint;
}

}  // namespace lissome

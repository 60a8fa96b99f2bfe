// See plan_roots.h.
#include "lissome/train/budget/facts/plan_roots.h"

#include "lissome/runtime/step/move/view_steps.h"

namespace lissome {

PlanRoots find_plan_roots(const Plan& plan) {
  PlanRoots found;
  for (size_t i = 0; i < plan.values.size(); ++i) found.roots.push_back(static_cast<PlanValueId>(i));
  found.makers.assign(plan.values.size(), -1);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    for (const PlanValueId result : step.results) {
      const auto at = static_cast<size_t>(result);
      found.makers[at] = static_cast<int>(i);
      // The viewed value was made before, so its root is known.
      if (plan.value(result).storage == Storage::view) found.roots[at] = found.root(find_viewed(step));
    }
  }
  return found;
}

}  // namespace lissome

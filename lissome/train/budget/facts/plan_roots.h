// For each value of a plan: the value in whose memory it lies, and the step that makes it.
#pragma once

#include <vector>

#include "lissome/runtime.h"

namespace lissome {

struct PlanRoots {
  std::vector<PlanValueId> roots;  // by value: the value in whose memory a view lies; any other value itself
  std::vector<int> makers;         // by value: the step that makes it; -1 for inputs, constants and state

  PlanValueId root(PlanValueId id) const { return roots[static_cast<size_t>(id)]; }
  int maker(PlanValueId id) const { return makers[static_cast<size_t>(id)]; }
};

// `plan` must have passed check_plan(), as each lowered plan has.
PlanRoots find_plan_roots(const Plan& plan);

}  // namespace lissome

// Outputs that leave a run as soon as they are complete, for who wants to write to an input then: a gradient whose
// weight is updated while the rest of a training step still runs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lissome/runtime/plan/plan.h"

namespace lissome {

struct EarlyOutput {
  size_t output = 0;           // of the plan
  std::vector<size_t> inputs;  // of the plan: what may be written when the output leaves
};

// Sets PlanOutput::leaves_after to the step that completes the output, or to a later one that is the last to read the
// memory of one of the inputs. Outputs that are literals stay as they are.
void let_leave_early(Plan& plan, std::span<const EarlyOutput> outputs);

}  // namespace lissome

// Measures and judges what the goals of a search ask for.
#pragma once

#include "lissome/tune/variant.h"

namespace lissome {

// Measures what only goals ask for: samples a second, the time to a first answer.
void measure_goals(OptimizationRecord& record, Variant& best, const Bench& bench, const OptimizeOptions& options,
                   const WorkControl& control);
// Lists the goals with what was measured, and advice where one is missed. Goals that were not measured are left out.
void judge_goals(OptimizationRecord& record, const OptimizeOptions& options);

// Whether a loss of quality is at most what --max-loss allows, but for rounding: 1 - 0.99 is more than 0.01.
bool is_allowed_loss(double loss, double most);

}  // namespace lissome

// What stands in the way of a goal, and what it would take.
#pragma once

#include <string>
#include <vector>

#include "lissome/measure.h"

namespace lissome {

std::vector<std::string> advise(const GoalRecord& goal, const OptimizationRecord& record);
// One sentence: the largest part of what is left.
std::string find_blocker(const GoalRecord& goal, const OptimizationRecord& record);

}  // namespace lissome

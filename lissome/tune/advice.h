// Advice for a goal that is not met: what blocks it, and what would help.
#pragma once

#include <string>
#include <vector>

#include "lissome/measure.h"

namespace lissome {

std::vector<std::string> advise(const GoalRecord& goal, const OptimizationRecord& record);
// One sentence about the largest remaining part of time or memory.
std::string find_blocker(const GoalRecord& goal, const OptimizationRecord& record);

}  // namespace lissome

// Schedules that people choose by module: what is made inside is made again, what leaves is kept.
#pragma once

#include <string>

#include "lissome/program.h"
#include "lissome/train/remat/drop_values.h"

namespace lissome {

// "encoder.layer.3" of "encoder.layer.3.attention.0": the outermost module that stands in a list; empty outside of
// lists.
std::string find_listed_module(const std::string& module);

// Modules that stand in a list ("blocks.3", "layer1.0") are taken `modules` at a time, in the order in which they run.
Drops drop_inside_modules(const Program& program, const StepModel& model, int modules);
// Modules whose path matches this shell-style pattern, and what is inside them. Throws usage when none does.
Drops drop_modules(const Program& program, const StepModel& model, const std::string& pattern);

// Of values made inside a group of nodes: `groups` by node, kNoGroup for none. What other groups read is kept.
constexpr int kNoGroup = -1;
Drops drop_inside_groups(const StepModel& model, const std::vector<int>& groups);

}  // namespace lissome

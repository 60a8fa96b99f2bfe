// Recompute sets that users choose by module: values inside a module are recomputed, its outputs are kept.
#pragma once

#include <string>

#include "lissome/program.h"
#include "lissome/train/remat/greedy_recompute.h"

namespace lissome {

// "encoder.layer.3" for "encoder.layer.3.attention.0": the outermost module in a list; empty outside of lists.
std::string find_listed_module(const std::string& module);

// Groups modules of lists ("blocks.3", "layer1.0") by `modules` at a time, in the order in which they run.
RecomputeSet recompute_inside_modules(const Program& program, const StepModel& model, int modules);
// Modules whose path matches this shell-style pattern, with their submodules. Throws usage if none matches.
RecomputeSet recompute_modules(const Program& program, const StepModel& model, const std::string& pattern);

// Values computed inside a group of nodes. `groups` by node; kNoGroup for no group. Values that other groups read are
// kept.
constexpr int kNoGroup = -1;
RecomputeSet recompute_inside_groups(const StepModel& model, const std::vector<int>& groups);

}  // namespace lissome

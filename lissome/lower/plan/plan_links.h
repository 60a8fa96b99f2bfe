// Who makes and who reads each value of a plan, and element-wise steps by what they do: for what joins steps.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lissome/kernel.h"
#include "lissome/runtime.h"

namespace lissome {

struct PlanLinks {
  std::vector<std::vector<int>> readers;  // by value: steps, -1 for outputs and writes
  std::vector<int> makers;                // by value: the step that makes it, -1 for none
};
PlanLinks link_plan(const Plan& plan);

// An element-wise step over floats.
bool is_elementwise(const PlanStep& step);
// x + y of two different values.
bool is_sum_of_two(const PlanStep& step);
// x * y of two different values.
bool is_product_of_two(const PlanStep& step);
// What a step of one operand does that is an activation and no more.
std::optional<Epilogue> find_activation(const PlanStep& step);

// Of one dtype, size and order, in memory of their own.
bool lie_alike(const PlanValue& left, const PlanValue& right);

}  // namespace lissome

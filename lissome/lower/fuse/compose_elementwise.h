// The instructions of one element-wise node: a single one, or several where an operation has none of its own.
#pragma once

#include <string_view>
#include <vector>

#include "lissome/lower/plan/plan_builder.h"

namespace lissome {

// NaN for what is no literal number.
double read_literal(const Argument& argument);
// Of the argument with this name; `fallback` where the op has none.
double read_optional_number(const Node& node, std::string_view name, double fallback);

// Adds the step that makes the node's result. `operation` is that of the kernel, or one that is composed here;
// `operands` are values and numbers.
void compose_elementwise(PlanBuilder& builder, const Node& node, std::string_view operation,
                         const std::vector<const Argument*>& operands, bool integers);

}  // namespace lissome

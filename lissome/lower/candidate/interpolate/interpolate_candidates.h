// What may compute the ops of interpolate: reasons to refuse a node, and the steps that it becomes. A pair for each row
// of interpolate_candidates.cpp.
#pragma once

#include "lissome/lower/candidate/candidate.h"

namespace lissome {

std::string refuse_interpolate(const PlanBuilder& builder, const Node& node);
std::string refuse_interpolate_bf16(const PlanBuilder& builder, const Node& node);
void emit_interpolate(PlanBuilder& builder, const Node& node);

}  // namespace lissome

// What may compute the ops of pool: reasons to refuse a node, and the steps that it becomes. A pair for each row of
// pool_candidates.cpp.
#pragma once

#include "lissome/lower/candidate/candidate.h"

namespace lissome {

std::string refuse_max_pool_indices(const PlanBuilder& builder, const Node& node);
void emit_max_pool_indices(PlanBuilder& builder, const Node& node);
std::string refuse_max_pool_gradient(const PlanBuilder& builder, const Node& node);
void emit_max_pool_gradient(PlanBuilder& builder, const Node& node);
std::string refuse_pool(const PlanBuilder& builder, const Node& node);
void emit_pool(PlanBuilder& builder, const Node& node);
std::string refuse_average_u8(const PlanBuilder& builder, const Node& node);
void emit_average_u8(PlanBuilder& builder, const Node& node);

}  // namespace lissome

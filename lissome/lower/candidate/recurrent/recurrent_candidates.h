// What may compute the ops of recurrent: reasons to refuse a node, and the steps that it becomes. A pair for each row
// of recurrent_candidates.cpp.
#pragma once

#include "lissome/lower/candidate/candidate.h"

namespace lissome {

std::string refuse_recurrent(const PlanBuilder& builder, const Node& node);
void emit_recurrent(PlanBuilder& builder, const Node& node);
std::string refuse_recurrent_layer(const PlanBuilder& builder, const Node& node);
void emit_recurrent_layer(PlanBuilder& builder, const Node& node);

}  // namespace lissome

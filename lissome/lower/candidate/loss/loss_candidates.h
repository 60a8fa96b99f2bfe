// What may compute the ops of loss: reasons to refuse a node, and the steps that it becomes. A pair for each row of
// loss_candidates.cpp.
#pragma once

#include "lissome/lower/candidate/candidate.h"

namespace lissome {

std::string refuse_nll_loss(const PlanBuilder& builder, const Node& node);
void emit_nll_loss(PlanBuilder& builder, const Node& node);

}  // namespace lissome

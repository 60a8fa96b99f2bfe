// What may compute the ops of attention: reasons to refuse a node, and the steps that it becomes. A pair for each row
// of attention_candidates.cpp.
#pragma once

#include "lissome/lower/candidate/candidate.h"

namespace lissome {

std::string refuse_attention(const PlanBuilder& builder, const Node& node);
// What no form of ours takes, whatever the dtypes, which are checked before.
std::string refuse_attention_form(const PlanBuilder& builder, const Node& node);
void emit_attention(PlanBuilder& builder, const Node& node);
std::string refuse_attention_gradient(const PlanBuilder& builder, const Node& node);
std::string refuse_attention_gradient_bf16(const PlanBuilder& builder, const Node& node);
void emit_attention_gradient(PlanBuilder& builder, const Node& node);
std::string refuse_attention_bf16(const PlanBuilder& builder, const Node& node);

}  // namespace lissome

// What may compute the ops of elementwise: reasons to refuse a node, and the steps that it becomes. A pair for each row
// of elementwise_candidates.cpp.
#pragma once

#include "lissome/lower/candidate/candidate.h"

namespace lissome {

std::string refuse_threshold_backward(const PlanBuilder& builder, const Node& node);
void emit_threshold_backward(PlanBuilder& builder, const Node& node);
std::string refuse_same_cast(const PlanBuilder& builder, const Node& node);
std::string refuse_cast_bf16(const PlanBuilder& builder, const Node& node);
void emit_cast_bf16(PlanBuilder& builder, const Node& node);
std::string refuse_glu(const PlanBuilder& builder, const Node& node);
void emit_glu(PlanBuilder& builder, const Node& node);
std::string refuse_dropout(const PlanBuilder& builder, const Node& node);
void emit_dropout(PlanBuilder& builder, const Node& node);
std::string refuse_elementwise(const PlanBuilder& builder, const Node& node);
void emit_elementwise(PlanBuilder& builder, const Node& node);
std::string refuse_mean(const PlanBuilder& builder, const Node& node);
void emit_mean(PlanBuilder& builder, const Node& node);
std::string refuse_quantize(const PlanBuilder& builder, const Node& node);
void emit_quantize(PlanBuilder& builder, const Node& node);
std::string refuse_dequantize(const PlanBuilder& builder, const Node& node);
void emit_dequantize(PlanBuilder& builder, const Node& node);
std::string refuse_lut_u8(const PlanBuilder& builder, const Node& node);
void emit_lut_u8(PlanBuilder& builder, const Node& node);

}  // namespace lissome

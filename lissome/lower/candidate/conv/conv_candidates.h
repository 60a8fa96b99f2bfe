// What may compute the ops of conv: reasons to refuse a node, and the steps that it becomes. A pair for each row of
// conv_candidates.cpp.
#pragma once

#include "lissome/lower/candidate/candidate.h"

namespace lissome {

std::string refuse_conv_f32(const PlanBuilder& builder, const Node& node);
void emit_conv_f32(PlanBuilder& builder, const Node& node);
// A depthwise convolution that becomes one step with the 1x1 that reads it, if conv_f32 takes that one too.
std::string refuse_separable_f32(const PlanBuilder& builder, const Node& node);
std::string refuse_large_separable_f32(const PlanBuilder& builder,
                                       const Node& node);  // the rule where nothing is timed
// A 1x1 convolution that becomes one step with the depthwise one that reads it, and the 1x1 behind that.
std::string refuse_inverted_f32(const PlanBuilder& builder, const Node& node);
std::string refuse_large_inverted_f32(const PlanBuilder& builder, const Node& node);
void emit_inverted_f32(PlanBuilder& builder, const Node& node);
void emit_separable_f32(PlanBuilder& builder, const Node& node);
// What Winograd does not take of a convolution that is constant and of known types.
std::string refuse_winograd_form(const PlanBuilder& builder, const Node& node);
std::string refuse_winograd_f32(const PlanBuilder& builder, const Node& node);
std::string refuse_winograd_bf16(const PlanBuilder& builder, const Node& node);
void emit_winograd_2x2(PlanBuilder& builder, const Node& node);
void emit_winograd_4x4(PlanBuilder& builder, const Node& node);
std::string refuse_conv_computed(const PlanBuilder& builder, const Node& node);
void emit_conv_computed(PlanBuilder& builder, const Node& node);
std::string refuse_conv_backward(const PlanBuilder& builder, const Node& node);
void emit_conv_backward(PlanBuilder& builder, const Node& node);
std::string refuse_conv_computed_bf16(const PlanBuilder& builder, const Node& node);
void emit_conv_computed_bf16(PlanBuilder& builder, const Node& node);
std::string refuse_conv_backward_bf16(const PlanBuilder& builder, const Node& node);
void emit_conv_backward_bf16(PlanBuilder& builder, const Node& node);
std::string refuse_transposed(const PlanBuilder& builder, const Node& node);
void emit_transposed(PlanBuilder& builder, const Node& node);
std::string refuse_conv_bf16(const PlanBuilder& builder, const Node& node);
void emit_conv_bf16(PlanBuilder& builder, const Node& node);
std::string refuse_conv_transposed_u8s8(const PlanBuilder& builder, const Node& node);
void emit_conv_transposed_u8s8(PlanBuilder& builder, const Node& node);
std::string refuse_conv_u8s8(const PlanBuilder& builder, const Node& node);
void emit_conv_u8s8(PlanBuilder& builder, const Node& node);
std::string refuse_winograd_u8s8(const PlanBuilder& builder, const Node& node);
void emit_winograd_u8s8(PlanBuilder& builder, const Node& node);

}  // namespace lissome

// What may compute the ops of norm: reasons to refuse a node, and the steps that it becomes. A pair for each row of
// norm_candidates.cpp.
#pragma once

#include "lissome/lower/candidate/candidate.h"

namespace lissome {

std::string refuse_batch_norm(const PlanBuilder& builder, const Node& node);
void emit_batch_norm(PlanBuilder& builder, const Node& node);
std::string refuse_batch_norm_backward(const PlanBuilder& builder, const Node& node);
void emit_batch_norm_backward(PlanBuilder& builder, const Node& node);
// Of the step that emit_threshold_backward() makes, whose operands are y and dy.
std::vector<std::string> list_threshold_instructions();
// What no gradient takes, whatever its pool did.
std::string refuse_max_pool_gradient_form(const PlanBuilder& builder, const Node& node);
std::string refuse_layer_norm(const PlanBuilder& builder, const Node& node);
void emit_layer_norm(PlanBuilder& builder, const Node& node);
// Softmax and its gradient are over the last dimension, or over the channels of images, which lie last in memory.
std::string refuse_softmax_dim(const PlanBuilder& builder, const Node& node);
Format softmax_format(const PlanBuilder& builder, const Node& node);
std::string refuse_softmax(const PlanBuilder& builder, const Node& node);
void emit_softmax(PlanBuilder& builder, const Node& node);
std::string refuse_layer_norm_gradient(const PlanBuilder& builder, const Node& node);
void emit_layer_norm_gradient(PlanBuilder& builder, const Node& node);
std::string refuse_softmax_gradient(const PlanBuilder& builder, const Node& node);
void emit_softmax_gradient(PlanBuilder& builder, const Node& node);
std::string refuse_layer_norm_bf16(const PlanBuilder& builder, const Node& node);
void emit_layer_norm_bf16(PlanBuilder& builder, const Node& node);
std::string refuse_softmax_bf16(const PlanBuilder& builder, const Node& node);
void emit_softmax_bf16(PlanBuilder& builder, const Node& node);
std::string refuse_group_norm(const PlanBuilder& builder, const Node& node);
std::string refuse_group_norm_bf16(const PlanBuilder& builder, const Node& node);
void emit_group_norm(PlanBuilder& builder, const Node& node);

}  // namespace lissome

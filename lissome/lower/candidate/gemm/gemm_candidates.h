// What may compute the ops of gemm: reasons to refuse a node, and the steps that it becomes. A pair for each row of
// gemm_candidates.cpp.
#pragma once

#include <optional>

#include "lissome/lower/candidate/candidate.h"

namespace lissome {

std::string refuse_linear_f32(const PlanBuilder& builder, const Node& node);
void emit_linear_f32(PlanBuilder& builder, const Node& node);
std::string refuse_linear_matmul(const PlanBuilder& builder, const Node& node);
std::string refuse_linear_casts(const PlanBuilder& builder, const Node& node);
std::string refuse_linear_matmul_bf16(const PlanBuilder& builder, const Node& node);
void emit_linear_matmul(PlanBuilder& builder, const Node& node);
std::string refuse_linear_bf16(const PlanBuilder& builder, const Node& node);
void emit_linear_bf16(PlanBuilder& builder, const Node& node);
// What a first layer of so many channels reads: planes as they lie, before they were rounded where a cast just did
// that. Empty elsewhere.
std::optional<ValueId> find_image_planes(const PlanBuilder& builder, const Node& node, ValueId x, int64_t inputs);
std::string refuse_matmul(const PlanBuilder& builder, const Node& node);
std::string refuse_matmul_bf16(const PlanBuilder& builder, const Node& node);
void emit_matmul(PlanBuilder& builder, const Node& node);
std::string refuse_add_products(const PlanBuilder& builder, const Node& node);
void emit_add_products(PlanBuilder& builder, const Node& node);
std::string refuse_linear_u8s8(const PlanBuilder& builder, const Node& node);
void emit_linear_u8s8(PlanBuilder& builder, const Node& node);
std::string refuse_linear_group(const PlanBuilder& builder, const Node& node);
void emit_linear_group(PlanBuilder& builder, const Node& node);
std::string refuse_embedding_group(const PlanBuilder& builder, const Node& node);
void emit_embedding_group(PlanBuilder& builder, const Node& node);
std::string refuse_linear_dynamic(const PlanBuilder& builder, const Node& node);
void emit_linear_dynamic(PlanBuilder& builder, const Node& node);

}  // namespace lissome

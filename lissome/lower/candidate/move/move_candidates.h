// What may compute the ops of move: reasons to refuse a node, and the steps that it becomes. A pair for each row of
// move_candidates.cpp.
#pragma once

#include "lissome/lower/candidate/candidate.h"

namespace lissome {

std::string refuse_concat(const PlanBuilder& builder, const Node& node);
void emit_concat(PlanBuilder& builder, const Node& node);
std::string refuse_piece(const PlanBuilder& builder, const Node& node);
void emit_piece(PlanBuilder& builder, const Node& node);
std::string refuse_reshape(const PlanBuilder& builder, const Node& node);
void emit_reshape(PlanBuilder& builder, const Node& node);
std::string refuse_permute(const PlanBuilder& builder, const Node& node);
void emit_permute(PlanBuilder& builder, const Node& node);
std::string refuse_slice(const PlanBuilder& builder, const Node& node);
// Whether a part of x along `dim` has even runs (see PlanBuilder::has_even_runs).
bool cuts_runs(const PlanBuilder& builder, ValueId x, int64_t dim);
void emit_slice(PlanBuilder& builder, const Node& node);
std::string refuse_expand(const PlanBuilder& builder, const Node& node);
void emit_expand(PlanBuilder& builder, const Node& node);
std::string refuse_embedding_gradient(const PlanBuilder& builder, const Node& node);
void emit_embedding_gradient(PlanBuilder& builder, const Node& node);
std::string refuse_shuffle(const PlanBuilder& builder, const Node& node);
void emit_shuffle(PlanBuilder& builder, const Node& node);
std::string refuse_pad(const PlanBuilder& builder, const Node& node);
void emit_pad(PlanBuilder& builder, const Node& node);
std::string refuse_cumulate(const PlanBuilder& builder, const Node& node);
void emit_cumulate(PlanBuilder& builder, const Node& node);
std::string refuse_gather(const PlanBuilder& builder, const Node& node);
void emit_gather(PlanBuilder& builder, const Node& node);
std::string refuse_find_largest(const PlanBuilder& builder, const Node& node);
void emit_find_largest(PlanBuilder& builder, const Node& node);
std::string refuse_embedding(const PlanBuilder& builder, const Node& node);
void emit_embedding(PlanBuilder& builder, const Node& node);

}  // namespace lissome

// Candidates that keep nodes for libtorch.
#pragma once

#include "lissome/lower/candidate/candidate.h"

namespace lissome {

std::string refuse_flash_attention(const PlanBuilder& builder, const Node& node);
void emit_flash_attention(PlanBuilder& builder, const Node& node);
std::string refuse_math_attention(const PlanBuilder& builder, const Node& node);
void emit_math_attention(PlanBuilder& builder, const Node& node);
std::string refuse_mkldnn_linear(const PlanBuilder& builder, const Node& node);
void emit_mkldnn_linear(PlanBuilder& builder, const Node& node);
std::string refuse_mkldnn_conv(const PlanBuilder& builder, const Node& node);
void emit_mkldnn_conv(PlanBuilder& builder, const Node& node);
std::string refuse_onednn_linear_int8(const PlanBuilder& builder, const Node& node);
void emit_onednn_linear_int8(PlanBuilder& builder, const Node& node);
std::string refuse_onednn_conv_int8(const PlanBuilder& builder, const Node& node);
void emit_onednn_conv_int8(PlanBuilder& builder, const Node& node);

}  // namespace lissome

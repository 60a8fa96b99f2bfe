// What convolutions whose weight is computed share in f32 and bf16; see candidate_conv_training.cpp.
#pragma once

#include "lissome/lower/plan/plan_builder.h"
#include "lissome/runtime/step/conv/conv_values.h"

namespace lissome {

// What neither direction takes; x and the weight must have this dtype.
std::string refuse_conv_form(const PlanBuilder& builder, const Node& node, Dtype dtype);
// Of a backward node: what is wanted is literal, and what it reads and gives has this dtype.
std::string refuse_conv_gradients(const PlanBuilder& builder, const Node& node, Dtype dtype);
// Whether result `i` of a backward node is asked for.
bool wants_conv_gradient(const Node& node, size_t i);

bool is_conv_transposed(const Node& node);
std::vector<int64_t> conv_weight_sizes(const PlanBuilder& builder, const Node& node);
// What is added and bent behind the sums of a fused node; nothing of others. Only where it is not transposed.
std::string refuse_conv_epilogue(const PlanBuilder& builder, const Node& node, Dtype dtype);
// Sets the activation and the residual of a fused node.
void set_conv_epilogue(PlanBuilder& builder, ConvValues& step, const Node& node);
// A name for what a node makes beside its results.
std::string conv_part_name(const PlanBuilder& builder, const Node& node, const char* part);

// Results 1 and 2 of a backward node; x and dy are those of the plain convolution. Sums are f32: where nothing but
// casts to f32 reads a bf16 result, it becomes f32, else it is rounded.
void add_conv_weight_gradient(PlanBuilder& builder, const Node& node, const Argument& x, const Argument& dy);
void add_conv_bias_gradient(PlanBuilder& builder, const Node& node, const Argument& dy);

}  // namespace lissome

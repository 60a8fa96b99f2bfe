// Declarations of every candidate's two functions, for the table and for the files that define them.
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

std::string refuse_conv_f32(const PlanBuilder& builder, const Node& node);
void emit_conv_f32(PlanBuilder& builder, const Node& node);
// A depthwise convolution that becomes one step with the 1x1 that reads it, if conv_f32 takes that one too.
std::string refuse_separable_f32(const PlanBuilder& builder, const Node& node);
std::string refuse_large_separable_f32(const PlanBuilder& builder,
                                       const Node& node);  // the rule where nothing is timed
void emit_separable_f32(PlanBuilder& builder, const Node& node);
// What Winograd does not take of a convolution that is constant and of known types.
std::string refuse_winograd_form(const PlanBuilder& builder, const Node& node);
std::string refuse_winograd_f32(const PlanBuilder& builder, const Node& node);
std::string refuse_winograd_bf16(const PlanBuilder& builder, const Node& node);
void emit_winograd_2x2(PlanBuilder& builder, const Node& node);
void emit_winograd_4x4(PlanBuilder& builder, const Node& node);

// candidate_conv_training.cpp
std::string refuse_conv_computed(const PlanBuilder& builder, const Node& node);
void emit_conv_computed(PlanBuilder& builder, const Node& node);
std::string refuse_conv_backward(const PlanBuilder& builder, const Node& node);
void emit_conv_backward(PlanBuilder& builder, const Node& node);

// candidate_conv_training_bf16.cpp
std::string refuse_conv_computed_bf16(const PlanBuilder& builder, const Node& node);
void emit_conv_computed_bf16(PlanBuilder& builder, const Node& node);
std::string refuse_conv_backward_bf16(const PlanBuilder& builder, const Node& node);
void emit_conv_backward_bf16(PlanBuilder& builder, const Node& node);

// candidate_batch_norm.cpp
std::string refuse_batch_norm(const PlanBuilder& builder, const Node& node);
void emit_batch_norm(PlanBuilder& builder, const Node& node);
std::string refuse_batch_norm_backward(const PlanBuilder& builder, const Node& node);
void emit_batch_norm_backward(PlanBuilder& builder, const Node& node);
std::string refuse_threshold_backward(const PlanBuilder& builder, const Node& node);
void emit_threshold_backward(PlanBuilder& builder, const Node& node);
// Of the step that emit_threshold_backward() makes, whose operands are y and dy.
std::vector<std::string> list_threshold_instructions();
std::string refuse_max_pool_indices(const PlanBuilder& builder, const Node& node);
void emit_max_pool_indices(PlanBuilder& builder, const Node& node);
// What no gradient takes, whatever its pool did.
std::string refuse_max_pool_gradient_form(const PlanBuilder& builder, const Node& node);
std::string refuse_max_pool_gradient(const PlanBuilder& builder, const Node& node);
void emit_max_pool_gradient(PlanBuilder& builder, const Node& node);

// candidate_transposed.cpp
std::string refuse_transposed(const PlanBuilder& builder, const Node& node);
void emit_transposed(PlanBuilder& builder, const Node& node);

// candidate_join.cpp
std::string refuse_concat(const PlanBuilder& builder, const Node& node);
void emit_concat(PlanBuilder& builder, const Node& node);
std::string refuse_piece(const PlanBuilder& builder, const Node& node);
void emit_piece(PlanBuilder& builder, const Node& node);

// candidate_view.cpp
std::string refuse_same_cast(const PlanBuilder& builder, const Node& node);
std::string refuse_reshape(const PlanBuilder& builder, const Node& node);
void emit_reshape(PlanBuilder& builder, const Node& node);
std::string refuse_permute(const PlanBuilder& builder, const Node& node);
void emit_permute(PlanBuilder& builder, const Node& node);
std::string refuse_slice(const PlanBuilder& builder, const Node& node);
void emit_slice(PlanBuilder& builder, const Node& node);
std::string refuse_expand(const PlanBuilder& builder, const Node& node);
void emit_expand(PlanBuilder& builder, const Node& node);

// candidate_normalize.cpp
std::string refuse_layer_norm(const PlanBuilder& builder, const Node& node);
void emit_layer_norm(PlanBuilder& builder, const Node& node);
// Softmax and its gradient are over the last dimension, or over the channels of images, which lie last in memory.
std::string refuse_softmax_dim(const PlanBuilder& builder, const Node& node);
Format softmax_format(const PlanBuilder& builder, const Node& node);
std::string refuse_softmax(const PlanBuilder& builder, const Node& node);
void emit_softmax(PlanBuilder& builder, const Node& node);

// candidate_attention.cpp
std::string refuse_attention(const PlanBuilder& builder, const Node& node);
// What no form of ours takes, whatever the dtypes, which are checked before.
std::string refuse_attention_form(const PlanBuilder& builder, const Node& node);
void emit_attention(PlanBuilder& builder, const Node& node);
std::string refuse_attention_gradient(const PlanBuilder& builder, const Node& node);
std::string refuse_attention_gradient_bf16(const PlanBuilder& builder, const Node& node);
void emit_attention_gradient(PlanBuilder& builder, const Node& node);

// candidate_gradient.cpp
std::string refuse_layer_norm_gradient(const PlanBuilder& builder, const Node& node);
void emit_layer_norm_gradient(PlanBuilder& builder, const Node& node);
std::string refuse_softmax_gradient(const PlanBuilder& builder, const Node& node);
void emit_softmax_gradient(PlanBuilder& builder, const Node& node);
std::string refuse_nll_loss(const PlanBuilder& builder, const Node& node);
void emit_nll_loss(PlanBuilder& builder, const Node& node);
std::string refuse_embedding_gradient(const PlanBuilder& builder, const Node& node);
void emit_embedding_gradient(PlanBuilder& builder, const Node& node);

// candidate_bf16.cpp; attention is emitted as that of f32 is
std::string refuse_linear_bf16(const PlanBuilder& builder, const Node& node);
void emit_linear_bf16(PlanBuilder& builder, const Node& node);
std::string refuse_conv_bf16(const PlanBuilder& builder, const Node& node);
void emit_conv_bf16(PlanBuilder& builder, const Node& node);
// What a first layer of so many channels reads: planes as they lie, before they were rounded where a cast just did
// that. Empty elsewhere.
std::optional<ValueId> find_image_planes(const PlanBuilder& builder, const Node& node, ValueId x, int64_t inputs);
std::string refuse_layer_norm_bf16(const PlanBuilder& builder, const Node& node);
void emit_layer_norm_bf16(PlanBuilder& builder, const Node& node);
std::string refuse_softmax_bf16(const PlanBuilder& builder, const Node& node);
void emit_softmax_bf16(PlanBuilder& builder, const Node& node);
std::string refuse_attention_bf16(const PlanBuilder& builder, const Node& node);
std::string refuse_cast_bf16(const PlanBuilder& builder, const Node& node);
void emit_cast_bf16(PlanBuilder& builder, const Node& node);
// candidate_recurrent.cpp
std::string refuse_recurrent(const PlanBuilder& builder, const Node& node);
void emit_recurrent(PlanBuilder& builder, const Node& node);

// candidate_recurrent_layer.cpp
std::string refuse_recurrent_layer(const PlanBuilder& builder, const Node& node);
void emit_recurrent_layer(PlanBuilder& builder, const Node& node);

// candidate_image.cpp
// candidate_glu.cpp
std::string refuse_glu(const PlanBuilder& builder, const Node& node);
void emit_glu(PlanBuilder& builder, const Node& node);

// candidate_shuffle.cpp
std::string refuse_shuffle(const PlanBuilder& builder, const Node& node);
void emit_shuffle(PlanBuilder& builder, const Node& node);

std::string refuse_group_norm(const PlanBuilder& builder, const Node& node);
std::string refuse_group_norm_bf16(const PlanBuilder& builder, const Node& node);
void emit_group_norm(PlanBuilder& builder, const Node& node);
std::string refuse_interpolate(const PlanBuilder& builder, const Node& node);
std::string refuse_interpolate_bf16(const PlanBuilder& builder, const Node& node);
void emit_interpolate(PlanBuilder& builder, const Node& node);

// candidate_matmul.cpp
std::string refuse_matmul(const PlanBuilder& builder, const Node& node);
std::string refuse_matmul_bf16(const PlanBuilder& builder, const Node& node);
void emit_matmul(PlanBuilder& builder, const Node& node);
std::string refuse_add_products(const PlanBuilder& builder, const Node& node);
void emit_add_products(PlanBuilder& builder, const Node& node);

// candidate_pad.cpp
std::string refuse_pad(const PlanBuilder& builder, const Node& node);
void emit_pad(PlanBuilder& builder, const Node& node);
std::string refuse_cumulate(const PlanBuilder& builder, const Node& node);
void emit_cumulate(PlanBuilder& builder, const Node& node);

std::string refuse_dropout(const PlanBuilder& builder, const Node& node);
void emit_dropout(PlanBuilder& builder, const Node& node);

// candidate_gather.cpp
std::string refuse_gather(const PlanBuilder& builder, const Node& node);
void emit_gather(PlanBuilder& builder, const Node& node);
std::string refuse_find_largest(const PlanBuilder& builder, const Node& node);
void emit_find_largest(PlanBuilder& builder, const Node& node);

// candidate_elementwise.cpp
std::string refuse_elementwise(const PlanBuilder& builder, const Node& node);
void emit_elementwise(PlanBuilder& builder, const Node& node);

// candidate_pool.cpp
std::string refuse_pool(const PlanBuilder& builder, const Node& node);
void emit_pool(PlanBuilder& builder, const Node& node);
// The window of a pooling whose numbers are literal, and what an average divides by.
void set_pool_window(PlanStep& step, const Node& node, size_t spatial);
void set_average(PlanStep& step, const Node& node, size_t spatial);
std::string refuse_mean(const PlanBuilder& builder, const Node& node);
void emit_mean(PlanBuilder& builder, const Node& node);
std::string refuse_embedding(const PlanBuilder& builder, const Node& node);
void emit_embedding(PlanBuilder& builder, const Node& node);

// candidate_int8.cpp
std::string refuse_linear_u8s8(const PlanBuilder& builder, const Node& node);
void emit_linear_u8s8(PlanBuilder& builder, const Node& node);
std::string refuse_linear_dynamic(const PlanBuilder& builder, const Node& node);
void emit_linear_dynamic(PlanBuilder& builder, const Node& node);
std::string refuse_conv_transposed_u8s8(const PlanBuilder& builder, const Node& node);
void emit_conv_transposed_u8s8(PlanBuilder& builder, const Node& node);
std::string refuse_conv_u8s8(const PlanBuilder& builder, const Node& node);
void emit_conv_u8s8(PlanBuilder& builder, const Node& node);
std::string refuse_winograd_u8s8(const PlanBuilder& builder, const Node& node);
void emit_winograd_u8s8(PlanBuilder& builder, const Node& node);
std::string refuse_quantize(const PlanBuilder& builder, const Node& node);
void emit_quantize(PlanBuilder& builder, const Node& node);
std::string refuse_dequantize(const PlanBuilder& builder, const Node& node);
void emit_dequantize(PlanBuilder& builder, const Node& node);

// candidate_bytes.cpp
std::string refuse_average_u8(const PlanBuilder& builder, const Node& node);
void emit_average_u8(PlanBuilder& builder, const Node& node);
std::string refuse_lut_u8(const PlanBuilder& builder, const Node& node);
void emit_lut_u8(PlanBuilder& builder, const Node& node);

// candidate_libtorch.cpp
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

// The lists of declared steps, one a family; step_table.cpp gathers them.
#pragma once

#include <vector>

#include "lissome/runtime/step/step_binder.h"

namespace lissome {

std::vector<StepRow> list_attention_gradient_steps();
std::vector<StepRow> list_attention_steps();
std::vector<StepRow> list_average_pool_u8_steps();
std::vector<StepRow> list_batch_norm_steps();
std::vector<StepRow> list_channel_steps();
std::vector<StepRow> list_col2im_steps();
std::vector<StepRow> list_conv_bf16_steps();
std::vector<StepRow> list_conv_f32_steps();
std::vector<StepRow> list_conv_gradient_steps();
std::vector<StepRow> list_conv_u8s8_steps();
std::vector<StepRow> list_copy_steps();
std::vector<StepRow> list_depthwise_steps();
std::vector<StepRow> list_dropout_steps();
std::vector<StepRow> list_elementwise_steps();
std::vector<StepRow> list_embedding_gradient_steps();
std::vector<StepRow> list_gather_steps();
std::vector<StepRow> list_group_norm_steps();
std::vector<StepRow> list_interpolate_steps();
std::vector<StepRow> list_layer_norm_steps();
std::vector<StepRow> list_linear_steps();
std::vector<StepRow> list_linear_u8s8_steps();
std::vector<StepRow> list_lut_u8_steps();
std::vector<StepRow> list_matmul_steps();
std::vector<StepRow> list_nll_loss_steps();
std::vector<StepRow> list_normalize_gradient_steps();
std::vector<StepRow> list_offload_steps();
std::vector<StepRow> list_pool_steps();
std::vector<StepRow> list_recurrent_steps();
std::vector<StepRow> list_reduce_steps();
std::vector<StepRow> list_softmax_steps();
std::vector<StepRow> list_view_steps();
std::vector<StepRow> list_winograd_steps();

}  // namespace lissome

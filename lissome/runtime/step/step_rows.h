// Declarations of every binder, for the step table and for the files that define them; and what binders share.
#pragma once

#include "lissome/runtime/step/step_binder.h"
#include "lissome/runtime/step/step_window.h"

namespace lissome {

// Attributes "activation", "alpha", "beta", each behind `prefix`.
Epilogue read_epilogue(const StepBinder& binder, const std::string& prefix = {});
// Whether f32 products may run on tile registers: the machine has them, and the weight is finite.
bool may_split_bf16x3(const StepBinder& binder, std::string_view kernel);
// none without the operand; attribute "residual_last" puts it after the activation.
ResidualPlace read_residual_place(const StepBinder& binder, size_t operand);

// Rows, inputs and outputs, strides, epilogue and place of the residual (operand 3) of a linear call; sizes of x and y
// are checked.
template <typename Call>
void read_linear(StepBinder& binder, Call& call) {
  const PlacedValue& x = binder.operand(0);
  binder.require(!x.sizes.empty(), "x has no dimensions");
  call.inputs = x.sizes.back();
  call.outputs = binder.attributes().integer("outputs");
  call.rows = call.inputs > 0 ? x.elements() / call.inputs : count_elements(Sizes(x.sizes.begin(), x.sizes.end() - 1));
  Sizes y_sizes = x.sizes;
  y_sizes.back() = call.outputs;
  binder.require_sizes(binder.result(), y_sizes);
  call.x_stride = call.inputs;
  call.y_stride = call.residual_stride = call.outputs;
  call.epilogue = read_epilogue(binder);
  call.residual_place = read_residual_place(binder, 3);
}

// How many numbers a softmax or its gradient goes over: the last dimension, or with attribute "channels" those of
// channels-last images. All values must be alike.
int64_t read_softmax_width(const StepBinder& binder, std::initializer_list<const PlacedValue*> values);

// What an average divides by: attributes counts_padding and divisor.
void read_average(const StepBinder& binder, PoolCall& call);

void bind_attention(StepBinder& binder);
void bind_average_pool_u8(StepBinder& binder);
void bind_attention_bf16(StepBinder& binder);
void bind_batch_norm_gradients(StepBinder& binder);
void bind_batch_norm_statistics(StepBinder& binder);
void bind_channel_affine(StepBinder& binder);
void bind_channel_sums(StepBinder& binder);
void bind_channel_totals(StepBinder& binder);
void bind_attention_gradient(StepBinder& binder);
void bind_attention_gradient_bf16(StepBinder& binder);
void bind_nll_loss(StepBinder& binder);
void bind_cross_entropy_gradient(StepBinder& binder);
void bind_embedding_gradient(StepBinder& binder);
void bind_layer_norm_gradient(StepBinder& binder);
void bind_softmax_gradient(StepBinder& binder);
void bind_concat(StepBinder& binder);
void bind_cumulate(StepBinder& binder);
void bind_dropout(StepBinder& binder);
void bind_attention_u8s8(StepBinder& binder);
void bind_group_norm(StepBinder& binder);
void bind_group_norm_bf16(StepBinder& binder);
void bind_interpolate(StepBinder& binder);
void bind_interpolate_bf16(StepBinder& binder);
void bind_matmul_bf16(StepBinder& binder);
void bind_matmul_f32(StepBinder& binder);
void bind_pad(StepBinder& binder);
void bind_conv_bf16(StepBinder& binder);
void bind_conv_data_f32(StepBinder& binder);
void bind_conv_f32(StepBinder& binder);
void bind_conv_weight_bf16(StepBinder& binder);
void bind_conv_weight_f32(StepBinder& binder);
void bind_copy(StepBinder& binder);
void bind_depthwise_bf16(StepBinder& binder);
void bind_depthwise_f32(StepBinder& binder);
void bind_depthwise_transposed_bf16(StepBinder& binder);
void bind_depthwise_transposed_f32(StepBinder& binder);
void bind_elementwise(StepBinder& binder);
void bind_find_largest(StepBinder& binder);
void bind_col2im(StepBinder& binder);
void bind_gather_rows(StepBinder& binder);
void bind_gru(StepBinder& binder);
void bind_gru_bf16(StepBinder& binder);
void bind_gru_u8s8(StepBinder& binder);
void bind_layer_norm(StepBinder& binder);
void bind_layer_norm_bf16(StepBinder& binder);
void bind_linear_bf16(StepBinder& binder);
void bind_linear_f32(StepBinder& binder);
void bind_lstm(StepBinder& binder);
void bind_lstm_bf16(StepBinder& binder);
void bind_lstm_u8s8(StepBinder& binder);
void bind_max_pool_gradient(StepBinder& binder);
void bind_max_pool_indices(StepBinder& binder);
void bind_offload(StepBinder& binder);
void bind_pack_conv_bf16(StepBinder& binder);
void bind_pack_conv_f32(StepBinder& binder);
void bind_pool(StepBinder& binder);
void bind_reduce(StepBinder& binder);
void bind_reload(StepBinder& binder);
void bind_separable_f32(StepBinder& binder);
void bind_softmax(StepBinder& binder);
void bind_softmax_bf16(StepBinder& binder);
void bind_lut_u8(StepBinder& binder);
void bind_gather(StepBinder& binder);
void bind_view(StepBinder& binder);
void bind_winograd_f32(StepBinder& binder);

}  // namespace lissome

// Declarations of every binder, for the step table and for the files that define them; and what binders share.
#pragma once

#include "lissome/runtime/step_binder.h"

namespace lissome {

// Attributes "activation", "alpha", "beta".
Epilogue read_epilogue(const StepBinder& binder);
// none without the operand; attribute "residual_last" puts it after the activation.
ResidualPlace read_residual_place(const StepBinder& binder, size_t operand);

struct WindowSizes {
  int64_t in_channels, out_channels, groups;
};
// The window of a convolution or pooling from channels-last values and attributes; everything checked.
WindowSizes read_window(const StepBinder& binder, const PlacedValue& x, const PlacedValue& y, Window& window);

void bind_attention(StepBinder& binder);
void bind_attention_bf16(StepBinder& binder);
void bind_concat(StepBinder& binder);
void bind_conv_f32(StepBinder& binder);
void bind_conv_u8s8(StepBinder& binder);
void bind_copy(StepBinder& binder);
void bind_depthwise_f32(StepBinder& binder);
void bind_elementwise(StepBinder& binder);
void bind_find_largest(StepBinder& binder);
void bind_fold_columns(StepBinder& binder);
void bind_gather(StepBinder& binder);
void bind_gru(StepBinder& binder);
void bind_layer_norm(StepBinder& binder);
void bind_layer_norm_bf16(StepBinder& binder);
void bind_linear_bf16(StepBinder& binder);
void bind_linear_f32(StepBinder& binder);
void bind_linear_u8s8(StepBinder& binder);
void bind_lstm(StepBinder& binder);
void bind_pool(StepBinder& binder);
void bind_quantize_rows(StepBinder& binder);
void bind_reduce(StepBinder& binder);
void bind_softmax(StepBinder& binder);
void bind_softmax_bf16(StepBinder& binder);
void bind_take(StepBinder& binder);
void bind_view(StepBinder& binder);
void bind_winograd_f32(StepBinder& binder);

}  // namespace lissome

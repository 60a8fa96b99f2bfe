// Functions that the binders of attention and of its gradient share.
#pragma once

#include "lissome/kernel.h"
#include "lissome/runtime/step/attention/attention_steps.h"

namespace lissome {

// The strides of [batch, heads, rows, size].
HeadStrides read_head_strides(const StepBinder& binder, const PlacedValue& value);
// The strides of a result, which lies as [batch, rows, heads, size] where `heads_last` says so. Checks its sizes.
HeadStrides read_result_strides(const StepBinder& binder, const AttentionFields& form, const PlacedValue& value,
                                const Sizes& sizes);
// Sizes, strides of q, k, v and the mask, and the scale.
void read_attention_shape(const StepBinder& binder, const AttentionValues& step, AttentionShape& call);

}  // namespace lissome

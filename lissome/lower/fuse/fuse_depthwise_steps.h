// Joins depthwise convolutions with what multiplies their pixels. On plans as PlanBuilder makes them, after the other
// joins, so that a depthwise convolution has its activation and the product behind it its own, and its residual:
//   depthwise_f32 -> conv_f32, 1x1                   becomes one separable_f32
//   conv_f32, 1x1 -> depthwise_f32 -> conv_f32, 1x1  becomes one inverted_f32
// where lowering chose that for the first of them (mark_joining).
// Where it was chosen and the product has become a step of another kernel, both stay apart.
#pragma once

#include "lissome/runtime.h"
#include "lissome/runtime/step/conv/conv_f32_steps.h"
#include "lissome/runtime/step/depthwise/depthwise_steps.h"

namespace lissome {

// The step as one that is to be joined; no plan keeps the mark.
PlanStep mark_joining(const DepthwiseF32Step& step);
PlanStep mark_joining(const ConvF32Step& step);

void fuse_depthwise_steps(Plan& plan);

}  // namespace lissome

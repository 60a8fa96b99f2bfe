// Joins depthwise convolutions with what multiplies their pixels. On plans as PlanBuilder makes them, after the other
// joins, so that a depthwise convolution has its activation and the product behind it its own, and its residual:
//   depthwise_f32 -> conv_f32, 1x1     becomes one separable_f32, where lowering chose that (kJoinsNext)
// Where it was chosen and the product has become a step of another kernel, both stay apart.
#pragma once

#include <string_view>

#include "lissome/runtime.h"

namespace lissome {

// Attribute of a depthwise_f32 step that is to be joined; no plan keeps it.
inline constexpr std::string_view kJoinsNext = "joins_next";

void fuse_depthwise_steps(Plan& plan);

}  // namespace lissome

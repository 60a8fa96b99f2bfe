// Weights of linears in groups: whole numbers of 4 or 8 bits, with a bf16 scale for a group of neighbouring inputs.
#pragma once

#include <ATen/core/Tensor.h>

namespace lissome {

constexpr int64_t kGroup = 32;  // inputs, of a row, and of a weight of 4 bits

struct GroupWeight {
  at::Tensor numbers;  // f32 [outputs, inputs], whole
  at::Tensor scales;   // f32 [outputs, groups], numbers that bf16 holds
};

// The scale of each group is the one that loses least of the weight, f32 [outputs, inputs], which is then rounded to
// the nearest numbers; `importance`: f32 [inputs], what the square of an input's loss counts, or undefined.
GroupWeight round_to_nearest(const at::Tensor& weight, const at::Tensor& importance, int bits);

// GPTQ (Frantar et al. 2022, arXiv 2210.17323): column by column, and what rounding a column loses is made up for by
// the columns behind it, as far as their inputs move together; then each number in turn becomes the best one beside the
// others, which loses less than learning the roundings by gradients does (AdaRound; see the test). `products`: f32
// [inputs, inputs], the sum of x xᵀ.
GroupWeight round_in_order(const at::Tensor& weight, const at::Tensor& products, int bits);

// The weight that the numbers stand for, f32 [outputs, inputs].
at::Tensor restore(const GroupWeight& rounded);

// As lissome::linear_group takes them: s8, or u8 that hold two numbers of 4 bits each.
at::Tensor pack_numbers(const at::Tensor& numbers, int bits);
at::Tensor pack_scales(const at::Tensor& scales);

}  // namespace lissome

// Passes over rows of channels: images with channels last, a row a pixel. Batch norm in training form is made of them
// (see batch_norm_steps.h), and the gradient of a convolution's bias. The kernels are in kernel/norm/batch_norm.h.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// Dtypes of rows; vectors of the channels are f32, sums f64.
inline constexpr DtypeSet kRowDtypes = {Dtype::f32, Dtype::bf16};

// sums [kChannelBlocks, 2, channels] over blocks of rows. Without dy: of x - x[0] and of its square. With dy: of dy and
// of dy * (x - mean), the latter 0 without x. Where `mask`, or mask_scale * mask + mask_shift where these are given, is
// not above zero, dy counts as 0. x, dy and mask are [batch, channels, ...]. With `indices`, which max_pool_indices
// made, dy is the gradient of what was max pooled behind x, and `window` is that of the pooling.
struct ChannelSumsStep {
  static constexpr std::string_view kKernel = "channel_sums";
  OptionalOperand x, dy, mask, mean, mask_scale, mask_shift, indices;
  Result sums;
  WindowFields window;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, kRowDtypes, ValueLayout::channels_last);
    fields.operand("dy", step.dy, kRowDtypes, ValueLayout::channels_last);
    fields.operand("mask", step.mask, kRowDtypes, ValueLayout::channels_last);
    fields.operand("mean", step.mean, {Dtype::f32});
    fields.operand("mask scale", step.mask_scale, {Dtype::f32});
    fields.operand("mask shift", step.mask_shift, {Dtype::f32});
    fields.operand("indices", step.indices, {Dtype::u8}, ValueLayout::channels_last);
    fields.result("sums", step.sums, {Dtype::f64});
    WindowFields::describe_ungrouped(step.window, fields);
  }
};

// total [channels]: the first sums of all blocks added up, as a vector of f32.
struct ChannelTotalsStep {
  static constexpr std::string_view kKernel = "channel_totals";
  Operand sums;
  Result total;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("sums", step.sums, {Dtype::f64});
    fields.result("total", step.total, {Dtype::f32});
  }
};

// y = activate(scale * x + z_scale * (z - z_center) + shift), with ReLU where `relu` says so. Where there is no z_scale
// it counts as 1, without z_center as 0; without z that term is absent. x counts as 0 where a mask says so, as dy does
// in channel_sums. In place of x there may be the gradient of what was max pooled, `pooled`, with `indices`; y must not
// lie in its memory.
struct ChannelAffineStep {
  static constexpr std::string_view kKernel = "channel_affine";
  OptionalOperand x;
  Operand scale, shift;
  OptionalOperand z, z_scale, z_center, mask, mask_scale, mask_shift, pooled, indices;
  Result y;
  WindowFields window;  // of the pooling
  bool relu = false;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, kRowDtypes, ValueLayout::channels_last);
    fields.operand("scale", step.scale, {Dtype::f32});
    fields.operand("shift", step.shift, {Dtype::f32});
    fields.operand("z", step.z, kRowDtypes, ValueLayout::channels_last);
    fields.operand("z scale", step.z_scale, {Dtype::f32});
    fields.operand("z center", step.z_center, {Dtype::f32});
    fields.operand("mask", step.mask, kRowDtypes, ValueLayout::channels_last);
    fields.operand("mask scale", step.mask_scale, {Dtype::f32});
    fields.operand("mask shift", step.mask_shift, {Dtype::f32});
    fields.operand("pooled", step.pooled, kRowDtypes, ValueLayout::channels_last);
    fields.operand("indices", step.indices, {Dtype::u8}, ValueLayout::channels_last);
    fields.result("y", step.y, kRowDtypes, ValueLayout::channels_last);
    WindowFields::describe_ungrouped(step.window, fields);
    fields.flag("relu", step.relu);
    fields.reuses(step.x);
    fields.reuses(step.z);
    fields.reuses(step.mask);
  }
};

}  // namespace lissome

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
// Case, rows = 6..40 (6272), c = 1..40 (64):
//   # Of rows, behind ReLU: the gradient of the batch norm reads its mask.
//   input %x: f32[{rows}, {c}]
//   input %y: f32[{rows}, {c}]
//   input %dy: f32[{rows}, {c}]
//   input %scale: f32[{c}]
//   input %mean: f32[{c}]
//   input %var: f32[{c}]
//   input %var2: f32[{c}]
//   %g: f32[{rows}, {c}] = aten::threshold_backward(%dy, %y, 0)
//   %dx: f32[{rows}, {c}], %dscale: f32[{c}], %dshift: f32[{c}] = aten::native_batch_norm_backward(
//     %g, %x, %scale, %mean, %var, %mean, %var2, true, 1e-05, [true, true, true])
//   return %dx, %dscale, %dshift
// Case, n = 1..3 (4), c = 1..40 (64), h = 3..9 (28), w = 3..8 (28), oh = (h-1)//2+1, ow = (w-1)//2+1:
//   # The gradient of a batch norm that reads the indices of a max pool behind it.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   input %scale: f32[{c}]
//   input %mean: f32[{c}]
//   input %var: f32[{c}]
//   input %d: f32[{n}, {c}, {oh}, {ow}]
//   %b: f32[{n}, {c}, {h}, {w}], %m: f32[{c}], %r: f32[{c}], %nm: f32[{c}], %nv: f32[{c}] =
//     aten::_native_batch_norm_legit_functional(%x, %scale, none, %mean, %var, true, 0.1, 1e-05)
//   %p: f32[{n}, {c}, {oh}, {ow}], %i: i64[{n}, {c}, {oh}, {ow}] =
//     aten::max_pool2d_with_indices(%b, [3, 3], [2, 2], [1, 1])
//   %db: f32[{n}, {c}, {h}, {w}] =
//     aten::max_pool2d_with_indices_backward(%d, %b, [3, 3], [2, 2], [1, 1], [1, 1], false, %i)
//   %dx: f32[{n}, {c}, {h}, {w}], %dscale: f32[{c}], %dshift: f32[{c}] = aten::native_batch_norm_backward(
//     %db, %x, %scale, %mean, %var, %m, %r, true, 1e-05, [true, true, true])
//   return %p, %dx, %dscale, %nm, %nv
struct ChannelSumsStep {
  static constexpr std::string_view kKernel = "channel_sums";
  OptionalOperand x, dy, mask, mean, mask_scale, mask_shift, indices;
  Result sums;
  WindowFields window;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, kRowDtypes, ValueLayout::channels_last);
    fields.leaves_open(step.x, {0, 2, 3});
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
// Case, n = 1..3 (8), c = 1..9 (16), k = 1..40 (64), h = 1..7 (28), w = 1..6 (28):
//   # The gradient of a bias, behind that of the weight.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   input %w: f32[{k}, {c}, 1, 1]
//   input %dy: f32[{n}, {k}, {h}, {w}]
//   %dx: none, %dw: f32[{k}, {c}, 1, 1], %db: f32[{k}] = aten::convolution_backward(
//     %dy, %x, %w, [{k}], [1, 1], [0, 0], [1, 1], false, [0, 0], 1, [false, true, true])
//   return %dw, %db
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
// Case, n = 1..3 (4), c = 1..40 (64), h = 3..7 (28), w = 2..6 (28):
//   # With the sum and the ReLU behind a batch norm.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   input %more: f32[{n}, {c}, {h}, {w}]
//   input %scale: f32[{c}]
//   input %shift: f32[{c}]
//   input %mean: f32[{c}]
//   input %var: f32[{c}]
//   %z: f32[{n}, {c}, {h}, {w}] = aten::max_pool2d(%more, [1, 1])
//   %b: f32[{n}, {c}, {h}, {w}], %m: f32[{c}], %r: f32[{c}], %nm: f32[{c}], %nv: f32[{c}] =
//     aten::_native_batch_norm_legit_functional(%x, %scale, %shift, %mean, %var, true, 0.1, 1e-05)
//   %s: f32[{n}, {c}, {h}, {w}] = aten::add.Tensor(%b, %z)
//   %y: f32[{n}, {c}, {h}, {w}] = aten::relu(%s)
//   return %y, %nm, %nv
// Case, n = 1..3 (4), c = 1..40 (64), h = 3..7 (28), w = 2..6 (28):
//   input %x32: f32[{n}, {c}, {h}, {w}]
//   input %scale: f32[{c}]
//   input %shift: f32[{c}]
//   input %mean: f32[{c}]
//   input %var: f32[{c}]
//   %x: bf16[{n}, {c}, {h}, {w}] = aten::to.dtype(%x32, bf16)
//   %b: bf16[{n}, {c}, {h}, {w}], %m: f32[{c}], %r: f32[{c}], %nm: f32[{c}], %nv: f32[{c}] =
//     aten::_native_batch_norm_legit_functional(%x, %scale, %shift, %mean, %var, true, 0.1, 1e-05)
//   %y: bf16[{n}, {c}, {h}, {w}] = aten::relu(%b)
//   return %y, %nm, %nv
// Case, n = 1..3 (1), c = 2..40 (256), h = 2..7 (56), w = 2..6 (56):
//   # A factor and an offset for each channel.
//   input %x: f32[{n}, {c}, {2*h}, {2*w}]
//   parameter @factor: f32[{c}, 1, 1]
//   parameter @offset: f32[{c}, 1, 1]
//   %p: f32[{n}, {c}, {h}, {w}] = aten::max_pool2d(%x, [2, 2])
//   %0: f32[{n}, {c}, {h}, {w}] = aten::mul.Tensor(%p, @factor)
//   %1: f32[{n}, {c}, {h}, {w}] = aten::add.Tensor(%0, @offset)
//   %y: f32[{n}, {c}, {h}, {w}] = aten::relu(%1)
//   return %y
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

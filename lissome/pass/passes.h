// Every pass: what it turns into what, and why it stands where it stands. The order itself is the table in pipeline.cpp.
// The before and after of each, and where it must not fire, are written out in tests/golden/<pass>.txt.
#pragma once

#include "lissome/program.h"

namespace lissome {

// conv1d/2d/3d, conv_transpose* -> convolution; native_layer_norm, _softmax, _native_batch_norm_legit_no_training, view
// and the like -> their user-level op. Before everything: each later pattern is written in one spelling.
int canonicalize(Program& program);

// dropout in eval mode, detach, alias, lift, x + 0, x * 1, to(own dtype), view to its own sizes -> their input.
// Early: everything else matches better without them.
int remove_identities(Program& program);

// clone, contiguous -> their input. A value is its logical elements; layout is chosen by lowering.
int remove_copies(Program& program);

// A pair of transposes or permutes that undo each other, or combine into one; a chain of reshapes -> the last one.
int merge_layout_chains(Program& program);

// f32 -> f64 -> f32 and the like: a cast pair that loses nothing -> its input.
int remove_casts(Program& program);

// Nodes whose arguments are all constant weights and literals -> a constant weight (bounded growth).
int fold_constants(Program& program);

// Pure nodes with equal op and arguments -> one.
int merge_common_subexpressions(Program& program);

// Weights of equal dtype, sizes and bytes -> one copy.
int merge_equal_weights(Program& program);

// repeat of size-1 dimensions -> expand, where every reader broadcasts anyway.
int replace_repeat_with_expand(Program& program);

// x / c -> x * (1/c) where exact or in floating point; pow(x, 2), pow(x, 3) -> products; pow(x, 0.5) -> sqrt.
int simplify_arithmetic(Program& program);

// reshape, bmm, reshape of the decomposed dialect, and einsum of two operands -> matmul. Before everything that reads
// products.
int restore_matmul(Program& program);

// matmul(x, w^T) + b, addmm, mm, baddbmm with a constant right side -> linear. Before every fusion of linears.
int fuse_matmul_add(Program& program);

// 1x1 convolution over a sequence or image of one pixel <-> linear, whichever lowering serves better.
int convert_pointwise_conv(Program& program);

// 0.5 x (1 + erf(x / sqrt 2)), its tanh form, x sigmoid(x) -> gelu, gelu tanh, silu.
int fuse_gelu(Program& program);
int fuse_silu(Program& program);

// (x - mean) / sqrt(var + eps) * w + b over the last dimensions -> layer_norm.
int fuse_layer_norm(Program& program);

// softmax(q k^T * scale + mask) v, written out with matmul, bmm, einsum or baddbmm -> scaled_dot_product_attention.
// After the simplifications, before sibling linears merge.
int fuse_attention(Program& program);

// conv or linear followed by batch norm in eval form -> one with folded weights (1/2/3d, transposed).
int fold_batch_norm(Program& program);

// Linears that read the same input (query, key, value) -> one wide linear and a split. After folding, which changes
// weights one by one.
int merge_sibling_linears(Program& program);

// conv or linear (+ residual) + pointwise activation -> lissome::conv_act / lissome::linear_act. Last: it hides the plain
// op from every other pattern.
int fuse_conv_activation(Program& program);
int fuse_linear_activation(Program& program);

}  // namespace lissome

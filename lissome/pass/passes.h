// Every pass: what it turns into what, and why it stands where it stands. The order itself is the table in
// pipeline.cpp. The before and after of each, and where it must not fire, are written out in tests/golden/<pass>.txt.
#pragma once

#include "lissome/program.h"

namespace lissome {

// ---- one spelling, nothing needless
// ----------------------------------------------------------------------------------

// Nodes without readers or effects -> gone, and what a condition or region computes for nobody. First, so that they
// count as nobody's reader; the driver does the same after every change.
int remove_dead_nodes(Program& program);

// conv1d/2d/3d, conv_transpose* -> convolution; native_layer_norm, _softmax, _native_batch_norm_legit_no_training,
// view, mT, _to_copy and the like -> their user-level op. Before everything: each later pattern is written in one
// spelling.
int canonicalize(Program& program);

// _assert_tensor_metadata and the like that hold by the types, true asserts -> gone. Early: a check counts as a reader.
int remove_satisfied_checks(Program& program);

// dropout in eval mode, detach, alias, x + 0, x * 1, to(own dtype), reshape or expand to own sizes -> their input.
// Early: everything else matches better without them.
int remove_identities(Program& program);

// clone, contiguous -> their input. A value is its logical elements; layout is chosen by lowering.
int remove_copies(Program& program);

// f32 -> f64 -> f32 and the like: a cast through a dtype that loses nothing -> one cast or none.
int remove_casts(Program& program);

// repeat of dimensions of size one -> expand, a view.
int replace_repeat_with_expand(Program& program);

// Nodes whose arguments are all constant weights and literals -> a constant weight (bounded growth) or a literal; sizes
// that types know -> numbers. After the needless nodes went, before patterns that look for constants.
int fold_constants(Program& program);

// sym_size of an intermediate value -> of an input that has that size. Before everything that counts readers.
int move_size_reads(Program& program);

// x / c -> x * (1/c) in floating point; pow(x, 2), square, pow(x, 3) -> products; pow(x, 0.5), pow(x, -0.5) -> sqrt,
// rsqrt. Before the patterns, which read products.
int simplify_arithmetic(Program& program);

// Pure nodes with equal op and arguments -> one. After simplification, which makes more of them equal.
int merge_common_subexpressions(Program& program);

// ---- products
// ----------------------------------------------------------------------------------------------------------

// Fake quantization, and dequantize(quantize(x)) of quantized exports, to 256 numbers with constant scales -> the ops
// that have kernels. After constants were folded, of which scales are made.
int restore_quantization(Program& program);

// reshape, bmm, reshape of the decomposed dialect; bmm with a matrix repeated for the batch; einsum of two operands;
// baddbmm -> matmul. Before everything that reads products.
int restore_matmul(Program& program);

// matmul(x, w) + b, mm with a constant right side, addmm with any -> linear; rows flattened for a product -> flattened
// behind it. Before every pass that reads linears.
int fuse_matmul_add(Program& program);

// linear(permute(x)), where the rows alone are permuted and layout follows -> permute(linear(x)); permute or reshape of
// the rows behind linear, where layout stands in front -> in front. Before the chains merge.
int move_permutations(Program& program);

// A pair of transposes or permutes that undo each other, or combine into one; a chain of reshapes -> the last one;
// longer chains of all of them and selections -> the shortest that does the same. After products were restored, whose
// reshapes it joins; once more after attention was fused, which transposes keys back.
int merge_layout_chains(Program& program);

// conv or linear followed by batch norm in eval form -> one with folded weights (1/2/3d, transposed). Before
// activations fuse and 1x1 convolutions become linear: both look at what follows the convolution.
int fold_batch_norm(Program& program);

// Batch norm in eval form that stays -> addcmul(offset, x, factor), which joins element-wise chains. After
// fold_batch_norm and fold_scale took what weights can hold.
int convert_batch_norm(Program& program);

// 1x1 convolution of a single pixel, or between a permute and its inverse -> linear; linear between a permute and its
// inverse -> 1x1 convolution. Whichever needs no move. After batch norm was folded, before activations fuse.
int convert_pointwise_conv(Program& program);

// ---- written out by hand
// -------------------------------------------------------------------------------------------------

// 0.5 x (1 + erf(x / sqrt 2)) and its tanh forms -> gelu. After simplify_arithmetic: powers are products.
int fuse_gelu(Program& program);

// 1 / (1 + exp(-x)) -> sigmoid; x * sigmoid(x), x / (1 + exp(-x)) -> silu.
int fuse_silu(Program& program);

// clamp(x, min=0) -> relu, clamp(x, 0, 6) -> relu6, clamp(x + 3, 0, 6) / 6 -> hardsigmoid, x times that -> hardswish.
int fuse_hard_activation(Program& program);

// (x - mean) / sqrt(var + eps) * w + b over the last dimensions -> layer_norm.
int fuse_layer_norm(Program& program);

// x * rsqrt(mean(x^2) + eps) * w over the last dimensions -> rms_norm. After layer norm, whose variance looks like it.
int fuse_rms_norm(Program& program);

// exp(x - max(x)) / sum of it -> softmax; where(no element above -inf, 0, softmax(x)) -> _safe_softmax. Before
// attention, which reads both.
int fuse_softmax(Program& program);

// softmax(q k^T * scale + mask) v, written out with matmul, bmm, einsum or baddbmm, masks added or filled in
// -> scaled_dot_product_attention. Before scales are folded and sibling linears merge: scales of queries belong to it.
// A row that -inf masks altogether gives zeros instead of NaN.
int fuse_attention(Program& program);

// ---- weights
// -------------------------------------------------------------------------------------------------------------

// conv or linear, then * or + a constant for all or for each output channel -> folded into its weights. After
// attention, which takes scales for nothing.
int fold_scale(Program& program);

// Linears that read the same input (query, key, value) -> one wide linear and slices. After folding, which changes
// weights one by one; siblings that an activation or residual follows stay apart for the passes below.
int merge_sibling_linears(Program& program);

// Constant weights of equal dtype, sizes and bytes -> one copy. After all that makes new weights.
int merge_equal_weights(Program& program);

// ---- last: they hide the plain op from every other pattern
// ---------------------------------------------------------------

// constant_pad_nd or pad with zeros, then a convolution that alone reads the result -> that convolution with more
// padding, lissome::conv_act where the two ends of a dimension differ. After all that reads aten::convolution.
int fuse_padding(Program& program);

// conv or linear (+ residual) + pointwise activation -> lissome::conv_act / lissome::linear_act, a reshape between them
// moved behind. Kept apart when the sum has other readers.
int fuse_conv_activation(Program& program);
int fuse_linear_activation(Program& program);

// convolution or conv_act over three dimensions with a constant weight and a known number of frames -> the same over
// two, whose channels are those of all frames that a window sees. After the fusions around convolutions.
int stack_conv_frames(Program& program);

// linear, linear_act or mm in bf16 of a computed weight: the cast of an operand from f32, and the cast of the result to
// f32 or its addition to an f32 value -> lissome::linear_bf16. After all that reads linears.
int fold_product_casts(Program& program);

}  // namespace lissome

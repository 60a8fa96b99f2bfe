// Convolutions in bf16 whose weight is computed, as under autocast, and their gradients. A step packs the weight in
// each run, from f32 where a cast just rounded it; then conv_bf16 does the rest: the gradient of the data is the
// transposed convolution with the same weight. That of the weight is summed in f32.
#include <algorithm>

#include "lissome/lower/candidate/conv/conv_candidates.h"
#include "lissome/lower/candidate/conv/conv_training.h"
#include "lissome/lower/candidate/elementwise/elementwise_candidates.h"
#include "lissome/lower/candidate/gemm/gemm_candidates.h"
#include "lissome/lower/candidate/geometry.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/runtime/step/conv/conv_bf16_steps.h"
#include "lissome/runtime/step/elementwise/elementwise_steps.h"

namespace lissome {
namespace {

// The f32 value that a cast just rounded, or the value itself.
ValueId find_unrounded(const PlanBuilder& builder, ValueId value) {
  const Node* maker = find_maker(builder, value);
  if (!maker || !maker->is("aten::to.dtype") || !refuse_cast_bf16(builder, *maker).empty()) return value;
  return maker->arguments.front().value();
}

PlanValueId pack_bf16_weight(PlanBuilder& builder, const Node& node, bool transposed) {
  const std::vector<int64_t> sizes = conv_weight_sizes(builder, node);
  PackConvBf16Step step;
  step.window = read_window_fields(node, sizes);
  step.transposed = transposed;
  step.weight = {builder.use_dense(find_unrounded(builder, node.argument("weight").value()), node)};
  const int64_t size = packed_conv_bf16_size(describe_conv_bf16(node, sizes, transposed));
  step.packed = {builder.make(builder.add_value(conv_part_name(builder, node, ".packed"), Dtype::bf16, {size}))};
  builder.add_step(step, node);
  return step.packed.value;
}

PlanValueId widen_bias(PlanBuilder& builder, const Node& node) {
  const Argument& bias = node.argument("bias");
  if (bias.is_none()) return PlanValueId::none;
  const PlanValueId narrow = builder.use_dense(bias, node);
  const std::vector<Dimension> sizes = builder.type(bias.value()).sizes;
  const PlanValueId wide = builder.make(builder.add_value(conv_part_name(builder, node, ".bias"), Dtype::f32, sizes));
  builder.add_step(make_cast_step(narrow, wide), node);
  return wide;
}

// `result` = the convolution of x, or the transposed one; the node's numbers and weight are the same for both.
void add_conv(PlanBuilder& builder, const Node& node, const Argument& x, bool transposed, PlanValueId bias,
              ValueId result) {
  const std::optional<ValueId> planes =
      transposed ? std::nullopt : find_image_planes(builder, node, x.value(), conv_weight_sizes(builder, node)[1]);
  ConvBf16Step step;
  step.window = read_window_fields(node, conv_weight_sizes(builder, node));
  step.transposed = transposed, step.planes = planes.has_value();
  set_conv_epilogue(builder, step, node);
  step.x = {planes ? builder.use_dense(*planes, node) : builder.use_dense(x, node, Format::channels_last)};
  step.weight = {pack_bf16_weight(builder, node, transposed)};
  step.bias = {bias};
  step.y = {builder.make(result, Storage::arena, Format::channels_last)};
  builder.add_step(step, node);
}

}  // namespace

std::string refuse_conv_computed_bf16(const PlanBuilder& builder, const Node& node) {
  const Argument& weight = node.argument("weight");
  if (weight.is_value() && builder.constant(weight.value())) return "the weight is constant: it is packed once";
  const std::string refusal = first_refusal(
      {refuse_conv_form(builder, node, Dtype::bf16), refuse_optional(builder, node.argument("bias"), Dtype::bf16),
       refuse_tensor(builder, Argument(node.result()), Dtype::bf16), refuse_conv_epilogue(builder, node, Dtype::bf16)});
  return !refusal.empty() || !is_conv_transposed(node) ? refusal : refuse_scattered(node);
}

void emit_conv_computed_bf16(PlanBuilder& builder, const Node& node) {
  const PlanValueId bias = widen_bias(builder, node);
  add_conv(builder, node, conv_input(node), is_conv_transposed(node), bias, node.result());
}

std::string refuse_conv_backward_bf16(const PlanBuilder& builder, const Node& node) {
  const std::string refusal = refuse_conv_gradients(builder, node, Dtype::bf16);
  return !refusal.empty() || !wants_conv_gradient(node, 0) ? refusal : refuse_scattered(node);
}

void emit_conv_backward_bf16(PlanBuilder& builder, const Node& node) {
  const Argument &x = node.argument("input"), &dy = node.argument("grad_output");
  const bool transposed = is_conv_transposed(node);
  // A transposed convolution is the data gradient of one that goes from its results to its input.
  if (wants_conv_gradient(node, 1)) {
    add_conv_weight_gradient(builder, node, transposed ? dy : x, transposed ? x : dy);
  }
  if (wants_conv_gradient(node, 2)) add_conv_bias_gradient(builder, node, dy);
  if (wants_conv_gradient(node, 0)) add_conv(builder, node, dy, !transposed, PlanValueId::none, node.results.at(0));
}

}  // namespace lissome

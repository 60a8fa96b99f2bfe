// Convolutions in bf16 whose weight is computed, as under autocast, and their gradients. A step packs the weight in
// each run, from f32 where a cast just rounded it; then conv_bf16 does the rest: the gradient of the data is the
// transposed convolution with the same weight. That of the weight is summed in f32.
#include <algorithm>

#include "lissome/lower/candidate/candidate_rows.h"
#include "lissome/lower/candidate/conv/conv_training.h"
#include "lissome/lower/candidate/geometry.h"
#include "lissome/lower/candidate/refusals.h"

namespace lissome {
namespace {

// The f32 value that a cast just rounded, or the value itself.
ValueId find_unrounded(const PlanBuilder& builder, ValueId value) {
  const Node* maker = find_maker(builder, value);
  if (!maker || !maker->is("aten::to.dtype") || !refuse_cast_bf16(builder, *maker).empty()) return value;
  return maker->arguments.front().value();
}

int pack_bf16_weight(PlanBuilder& builder, const Node& node, bool transposed) {
  const std::vector<int64_t> sizes = conv_weight_sizes(builder, node);
  PlanStep step;
  step.kernel = "pack_conv_bf16";
  set_conv_window(step, node, sizes);
  if (transposed) step.attributes.set("transposed", int64_t{1});
  step.operands = {builder.use_dense(find_unrounded(builder, node.argument("weight").value()), node)};
  const int64_t size = packed_conv_bf16_size(describe_conv_bf16(node, sizes, transposed));
  const ValueId packed = builder.add_value(conv_part_name(builder, node, ".packed"), Dtype::bf16, {size});
  step.results = {builder.make(packed)};
  const int made = step.results[0];
  builder.add_step(std::move(step), node);
  return made;
}

int widen_bias(PlanBuilder& builder, const Node& node) {
  const Argument& bias = node.argument("bias");
  if (bias.is_none()) return -1;
  PlanStep step;
  step.kernel = "elementwise";
  step.attributes.set("program", std::vector<std::string>{"load 0 0 0 0 0 0"});
  step.operands = {builder.use_dense(bias, node)};
  const std::vector<Dimension> sizes = builder.type(bias.value()).sizes;
  step.results = {builder.make(builder.add_value(conv_part_name(builder, node, ".bias"), Dtype::f32, sizes))};
  const int wide = step.results[0];
  builder.add_step(std::move(step), node);
  return wide;
}

// `result` = the convolution of x, or the transposed one; the node's numbers and weight are the same for both.
void add_conv(PlanBuilder& builder, const Node& node, const Argument& x, bool transposed, int bias, ValueId result) {
  const std::optional<ValueId> planes =
      transposed ? std::nullopt : find_image_planes(builder, node, x.value(), conv_weight_sizes(builder, node)[1]);
  PlanStep step;
  step.kernel = "conv_bf16";
  set_conv_window(step, node, conv_weight_sizes(builder, node));
  if (transposed) step.attributes.set("transposed", int64_t{1});
  if (planes) step.attributes.set("planes", int64_t{1});
  const int residual = set_conv_epilogue(builder, step, node);
  step.operands = {planes ? builder.use_dense(*planes, node) : builder.use_dense(x, node, Format::channels_last),
                   pack_bf16_weight(builder, node, transposed), bias, residual};
  step.results = {builder.make(result, Storage::arena, Format::channels_last)};
  builder.add_step(std::move(step), node);
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
  const int bias = widen_bias(builder, node);
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
  if (wants_conv_gradient(node, 0)) add_conv(builder, node, dy, !transposed, -1, node.results.at(0));
}

}  // namespace lissome

// Convolutions in f32 whose weight is computed, as in training, and their gradients: a step packs the weight in each
// run, then the kernels of constant weights do the rest. Each gradient is a step of its own, so that what it reads may
// die as early as can be. Also what those in bf16 share with them (candidate_conv_training_bf16.cpp).
#include <algorithm>

#include "lissome/lower/candidate/conv/conv_candidates.h"
#include "lissome/lower/candidate/conv/conv_constants.h"
#include "lissome/lower/candidate/conv/conv_training.h"
#include "lissome/lower/candidate/geometry.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/runtime/step/conv/conv_f32_steps.h"
#include "lissome/runtime/step/conv/conv_gradient_steps.h"
#include "lissome/runtime/step/elementwise/elementwise_steps.h"
#include "lissome/runtime/step/elementwise/reduce_steps.h"
#include "lissome/runtime/step/norm/channel_steps.h"

namespace lissome {
namespace {

const ValueType& type_of(const PlanBuilder& builder, const Node& node, const char* name) {
  return builder.type(node.argument(name).value());
}

int64_t count_taps(const std::vector<int64_t>& weight) {
  int64_t taps = 1;
  for (size_t i = 2; i < weight.size(); ++i) taps *= weight[i];
  return taps;
}

}  // namespace

bool is_conv_transposed(const Node& node) { return *node.argument("transposed").get<bool>(); }

std::vector<int64_t> conv_weight_sizes(const PlanBuilder& builder, const Node& node) {
  std::vector<int64_t> sizes;
  for (const Dimension& size : type_of(builder, node, "weight").sizes) sizes.push_back(size.constant().value_or(0));
  return sizes;
}

std::string refuse_conv_form(const PlanBuilder& builder, const Node& node, Dtype dtype) {
  const Argument &weight = node.argument("weight"), &input = conv_input(node);
  if (!node.argument("transposed").get<bool>()) return "the direction is computed";
  const std::string refusal = first_refusal(
      {refuse_geometry(node), refuse_tensor(builder, weight, dtype), refuse_tensor(builder, input, dtype)});
  if (!refusal.empty()) return refusal;
  const std::vector<int64_t> sizes = conv_weight_sizes(builder, node);
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return "the sizes of the weight vary, or it is empty";
  if (sizes.size() != 3 && sizes.size() != 4) return "it has neither one nor two spatial dimensions";
  if (builder.type(input.value()).sizes.size() != sizes.size()) return "x has no batch";
  // The products of a channel with itself do not fill registers of products.
  if (groups_of(node) > 1 && sizes[1] == 1) return "it is depthwise";
  return {};
}

std::string refuse_conv_epilogue(const PlanBuilder& builder, const Node& node, Dtype dtype) {
  if (!node.is("lissome::conv_act")) return {};
  if (is_conv_transposed(node)) return "it is transposed and fused";
  return first_refusal(
      {refuse_activation(node.argument("act")), refuse_residual(builder, node, node.argument("residual"), dtype)});
}

void set_conv_epilogue(PlanBuilder& builder, ConvValues& step, const Node& node) {
  if (!node.is("lissome::conv_act")) return;
  step.activation = translate_activation(*node.argument("act").get<std::string>());
  step.residual = {builder.use_dense(node.argument("residual"), node, Format::channels_last)};
}

std::string conv_part_name(const PlanBuilder& builder, const Node& node, const char* part) {
  return builder.program().value(node.results.at(0)).name + part;
}

namespace {

// The packed weight, for the forward kernel or that of the data gradient.
PlanValueId pack_f32_weight(PlanBuilder& builder, const Node& node, ConvPacking packing) {
  const std::vector<int64_t> sizes = conv_weight_sizes(builder, node);
  const int64_t groups = groups_of(node), outputs = sizes[0], inputs = sizes[1] * groups;
  const int64_t taps = count_taps(sizes);
  const bool data = packing == ConvPacking::data;
  const int64_t size = data ? packed_conv_data_f32_size(outputs, inputs, groups, taps)
                            : packed_conv_f32_size(outputs, inputs, groups, taps);
  PackConvF32Step step;
  step.window = read_window_fields(node, sizes);
  step.packing = data ? kPackData : kPackForward;
  step.weight = {builder.use_dense(node.argument("weight"), node)};
  step.packed = {builder.make(builder.add_value(conv_part_name(builder, node, ".packed"), Dtype::f32, {size}))};
  builder.add_step(step, node);
  return step.packed.value;
}

// y of `result` = the convolution of x, where weight [out, in / groups, ...]; with what a fused node adds.
void add_forward(PlanBuilder& builder, const Node& node, const Argument& x, PlanValueId bias, ValueId result) {
  const std::vector<int64_t> weight = conv_weight_sizes(builder, node);
  ConvF32Step step;
  step.window = read_window_fields(node, weight);
  step.planes = reads_planes(builder, node, x, weight);
  set_conv_epilogue(builder, step, node);
  step.x = {builder.use_dense(x, node, step.planes ? Format::row_major : Format::channels_last)};
  step.weight = {pack_f32_weight(builder, node, ConvPacking::forward)};
  step.bias = {bias};
  step.zeros = {pack_zeros(builder, Dtype::f32, weight[1] * groups_of(node))};
  step.y = {builder.make(result, Storage::arena, Format::channels_last)};
  builder.add_step(step, node);
}

// The window of a plain convolution that goes the other way round; none where strides or padding do not allow one.
std::optional<WindowFields> turn_window(WindowFields window) {
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    window.padding[i] = window.dilation[i] * (window.kernel[i] - 1) - window.padding[i];
    if (window.stride[i] != 1 || window.padding[i] < 0) return std::nullopt;
  }
  return window;
}

// dx of `result` from dy, the other way round. With stride 1 that is a plain convolution too.
void add_data(PlanBuilder& builder, const Node& node, const Argument& dy, PlanValueId bias, ValueId result) {
  const std::vector<int64_t> weight = conv_weight_sizes(builder, node);
  const WindowFields window = read_window_fields(node, weight);
  const std::optional<WindowFields> turned = turn_window(window);
  const PlanValueId dense = builder.use_dense(dy, node, Format::channels_last);
  const PlanValueId packed = pack_f32_weight(builder, node, ConvPacking::data);
  const PlanValueId zeros = pack_zeros(builder, Dtype::f32, weight[0]);
  const PlanValueId made = builder.make(result, Storage::arena, Format::channels_last);
  if (turned) {
    ConvF32Step step;
    step.x = {dense}, step.weight = {packed}, step.bias = {bias}, step.zeros = {zeros}, step.y = {made};
    step.window = *turned;
    return builder.add_step(step, node);
  }
  ConvDataF32Step step;
  step.dy = {dense}, step.weight = {packed}, step.bias = {bias}, step.zeros = {zeros}, step.dx = {made};
  step.window = window;
  builder.add_step(step, node);
}

bool only_widens(const Node& node) {
  return node.is("aten::to.dtype") || node.is("aten::_to_copy") || node.is("aten::to.dtype_layout");
}

// The plan's value for the sums of result `i`: the result itself where it is f32, or may become it.
PlanValueId make_sums(PlanBuilder& builder, const Node& node, size_t i) {
  const ValueId result = node.results.at(i);
  ValueType& type = builder.program().value(result).type;
  const std::vector<const Node*> readers = find_readers(builder.program(), result);
  const bool may_widen = !leaves_program(builder.program(), result) &&
                         std::all_of(readers.begin(), readers.end(), [&](const Node* reader) {
                           return only_widens(*reader) && builder.type(reader->result()).dtype == Dtype::f32;
                         });
  if (may_widen) type.dtype = Dtype::f32;
  if (type.dtype == Dtype::f32) return builder.make(result);
  const std::string name = builder.program().value(result).name + ".sums";
  return builder.make(builder.add_value(name, Dtype::f32, std::vector<Dimension>(type.sizes)));
}

void round_sums(PlanBuilder& builder, const Node& node, size_t i, PlanValueId sums) {
  if (builder.type(node.results.at(i)).dtype == Dtype::f32) return;
  builder.add_step(make_cast_step(sums, builder.make(node.results.at(i))), node);
}

void add_weight_step(PlanBuilder& builder, const Node& node, const ConvWeightValues& values, Dtype dtype) {
  if (dtype == Dtype::bf16) {
    builder.add_step(ConvWeightBf16Step{values}, node);
  } else {
    builder.add_step(ConvWeightF32Step{values}, node);
  }
}

}  // namespace

void add_conv_weight_gradient(PlanBuilder& builder, const Node& node, const Argument& x, const Argument& dy) {
  const std::vector<int64_t> weight = conv_weight_sizes(builder, node);
  const int64_t groups = groups_of(node);
  const int64_t splits = choose_conv_weight_splits(weight[0], weight[1] * groups, groups, count_taps(weight));
  ConvWeightValues step;
  step.window = read_window_fields(node, weight);
  step.x = {builder.use_dense(x, node, Format::channels_last)};
  step.dy = {builder.use_dense(dy, node, Format::channels_last)};
  const Dtype dtype = builder.type(x.value()).dtype;
  const PlanValueId sums = make_sums(builder, node, 1);
  if (splits == 1) {
    step.dw = {sums};
    add_weight_step(builder, node, step, dtype);
    return round_sums(builder, node, 1, sums);
  }
  step.splits = splits;
  std::vector<Dimension> sizes = {splits};
  sizes.insert(sizes.end(), weight.begin(), weight.end());
  step.dw = {builder.make(builder.add_value(conv_part_name(builder, node, ".pieces"), Dtype::f32, sizes))};
  add_weight_step(builder, node, step, dtype);
  ReduceStep sum;
  sum.reduction = "sum", sum.first = 0, sum.count = 1;
  sum.x = {step.dw.value};
  sum.y = {sums};
  builder.add_step(sum, node);
  round_sums(builder, node, 1, sums);
}

void add_conv_bias_gradient(PlanBuilder& builder, const Node& node, const Argument& dy) {
  const Dimension channels = builder.type(node.results.at(2)).sizes.at(0);
  ChannelSumsStep sums;
  sums.dy = {builder.use_dense(dy, node, Format::channels_last)};
  sums.sums = {builder.make(
      builder.add_value(conv_part_name(builder, node, ".blocks"), Dtype::f64, {kChannelBlocks, 2, channels}))};
  ChannelTotalsStep totals;
  totals.sums = {sums.sums.value};
  totals.total = {make_sums(builder, node, 2)};
  builder.add_step(sums, node);
  builder.add_step(totals, node);
  round_sums(builder, node, 2, totals.total.value);
}

bool wants_conv_gradient(const Node& node, size_t i) { return *node.argument("output_mask").list().at(i).get<bool>(); }

std::string refuse_conv_gradients(const PlanBuilder& builder, const Node& node, Dtype dtype) {
  const Argument& mask = node.argument("output_mask");
  if (!mask.is_list() || mask.list().size() != 3) return "the results that are wanted are computed";
  for (const Argument& item : mask.list()) {
    if (!item.get<bool>()) return "the results that are wanted are computed";
  }
  const std::string refusal = first_refusal(
      {refuse_conv_form(builder, node, dtype), refuse_tensor(builder, node.argument("grad_output"), dtype)});
  if (!refusal.empty()) return refusal;
  for (size_t i = 0; i < 3; ++i) {
    if (!wants_conv_gradient(node, i)) continue;
    const std::string refused = refuse_tensor(builder, Argument(node.results.at(i)), dtype);
    if (!refused.empty()) return refused;
  }
  return {};
}

std::string refuse_conv_computed(const PlanBuilder& builder, const Node& node) {
  const Argument& weight = node.argument("weight");
  if (weight.is_value() && builder.constant(weight.value())) return "the weight is constant: it is packed once";
  const std::string refusal = first_refusal(
      {refuse_conv_form(builder, node, Dtype::f32), refuse_optional(builder, node.argument("bias"), Dtype::f32),
       refuse_tensor(builder, Argument(node.result()), Dtype::f32), refuse_conv_epilogue(builder, node, Dtype::f32)});
  return !refusal.empty() || !is_conv_transposed(node) ? refusal : refuse_scattered(node);
}

void emit_conv_computed(PlanBuilder& builder, const Node& node) {
  const PlanValueId bias = builder.use_dense(node.argument("bias"), node);
  if (is_conv_transposed(node)) {
    add_data(builder, node, conv_input(node), bias, node.result());
  } else {
    add_forward(builder, node, conv_input(node), bias, node.result());
  }
}

std::string refuse_conv_backward(const PlanBuilder& builder, const Node& node) {
  const std::string refusal = refuse_conv_gradients(builder, node, Dtype::f32);
  if (!refusal.empty() || is_conv_transposed(node) || !wants_conv_gradient(node, 0)) return refusal;
  return refuse_scattered(node);
}

void emit_conv_backward(PlanBuilder& builder, const Node& node) {
  const Argument &x = node.argument("input"), &dy = node.argument("grad_output");
  // A transposed convolution is the data gradient of one that goes from its results to its input.
  if (wants_conv_gradient(node, 1)) {
    add_conv_weight_gradient(builder, node, is_conv_transposed(node) ? dy : x, is_conv_transposed(node) ? x : dy);
  }
  if (wants_conv_gradient(node, 2)) add_conv_bias_gradient(builder, node, dy);
  if (wants_conv_gradient(node, 0))
    (is_conv_transposed(node) ? add_forward : add_data)(builder, node, dy, PlanValueId::none, node.results.at(0));
}

}  // namespace lissome

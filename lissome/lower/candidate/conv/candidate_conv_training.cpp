// Convolutions in f32 whose weight is computed, as in training, and their gradients: a step packs the weight in each
// run, then the kernels of constant weights do the rest. Each gradient is a step of its own, so that what it reads may
// die as early as can be. Also what those in bf16 share with them (candidate_conv_training_bf16.cpp).
#include <algorithm>

#include "lissome/lower/candidate/candidate_rows.h"
#include "lissome/lower/candidate/conv/conv_constants.h"
#include "lissome/lower/candidate/conv/conv_training.h"
#include "lissome/lower/candidate/geometry.h"
#include "lissome/lower/candidate/refusals.h"

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

bool all_are(const std::vector<int64_t>& numbers, int64_t wanted) {
  return std::all_of(numbers.begin(), numbers.end(), [&](int64_t number) { return number == wanted; });
}

std::vector<int64_t> spread_numbers(const Node& node, const char* name, size_t spatial) {
  return spread(*read_integers(node.argument(name)), spatial);
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

void set_conv_window(PlanStep& step, const Node& node, const std::vector<int64_t>& weight) {
  const size_t spatial = weight.size() - 2;
  step.attributes.set("kernel", std::vector<int64_t>(weight.begin() + 2, weight.end()));
  for (const char* name : {"stride", "padding", "dilation"})
    step.attributes.set(name, spread_numbers(node, name, spatial));
  step.attributes.set("groups", groups_of(node));
}

std::string refuse_conv_epilogue(const PlanBuilder& builder, const Node& node, Dtype dtype) {
  if (!node.is("lissome::conv_act")) return {};
  if (is_conv_transposed(node)) return "it is transposed and fused";
  return first_refusal(
      {refuse_activation(node.argument("act")), refuse_residual(builder, node, node.argument("residual"), dtype)});
}

int set_conv_epilogue(PlanBuilder& builder, PlanStep& step, const Node& node) {
  if (!node.is("lissome::conv_act")) return -1;
  set_activation(step, *node.argument("act").get<std::string>());
  return builder.use_dense(node.argument("residual"), node, Format::channels_last);
}

std::string conv_part_name(const PlanBuilder& builder, const Node& node, const char* part) {
  return builder.program().value(node.results.at(0)).name + part;
}

namespace {

// The packed weight, for the forward kernel or that of the data gradient.
int pack_f32_weight(PlanBuilder& builder, const Node& node, ConvPacking packing) {
  const std::vector<int64_t> sizes = conv_weight_sizes(builder, node);
  const int64_t groups = groups_of(node), outputs = sizes[0], inputs = sizes[1] * groups;
  const int64_t taps = count_taps(sizes);
  const bool data = packing == ConvPacking::data;
  const int64_t size = data ? packed_conv_data_f32_size(outputs, inputs, groups, taps)
                            : packed_conv_f32_size(outputs, inputs, groups, taps);
  PlanStep step;
  step.kernel = "pack_conv_f32";
  set_conv_window(step, node, sizes);
  if (data) step.attributes.set("packing", std::string("data"));
  step.operands = {builder.use_dense(node.argument("weight"), node)};
  step.results = {builder.make(builder.add_value(conv_part_name(builder, node, ".packed"), Dtype::f32, {size}))};
  const int packed = step.results[0];
  builder.add_step(std::move(step), node);
  return packed;
}

// An image as data hold it is read as it lies, so that no copy of it waits beside the much larger y. On tile registers
// x must be channels-last.
bool reads_planes(const PlanBuilder& builder, const Node& node, const Argument& x) {
  constexpr int64_t kMostPlanes = 4;
  return builder.format(x.value()) == Format::row_major && groups_of(node) == 1 &&
         conv_weight_sizes(builder, node)[1] <= kMostPlanes && find_kernel("conv_f32").isa != Isa::amx;
}

// y of `result` = the convolution of x, where weight [out, in / groups, ...]; with what a fused node adds.
void add_forward(PlanBuilder& builder, const Node& node, const Argument& x, int bias, ValueId result) {
  const std::vector<int64_t> weight = conv_weight_sizes(builder, node);
  PlanStep step;
  step.kernel = "conv_f32";
  set_conv_window(step, node, weight);
  const bool planes = reads_planes(builder, node, x);
  if (planes) step.attributes.set("planes", int64_t{1});
  const int residual = set_conv_epilogue(builder, step, node);
  step.operands = {builder.use_dense(x, node, planes ? Format::row_major : Format::channels_last),
                   pack_f32_weight(builder, node, ConvPacking::forward), bias, residual,
                   pack_zeros(builder, Dtype::f32, weight[1] * groups_of(node))};
  step.results = {builder.make(result, Storage::arena, Format::channels_last)};
  builder.add_step(std::move(step), node);
}

// The other way round. With stride 1 that is a plain convolution too.
void add_data(PlanBuilder& builder, const Node& node, const Argument& dy, int bias, ValueId result) {
  const std::vector<int64_t> weight = conv_weight_sizes(builder, node);
  const size_t spatial = weight.size() - 2;
  std::vector<int64_t> padding = spread_numbers(node, "padding", spatial);
  const std::vector<int64_t> dilation = spread_numbers(node, "dilation", spatial);
  for (size_t i = 0; i < spatial; ++i) padding[i] = dilation[i] * (weight[i + 2] - 1) - padding[i];
  const bool plain =
      all_are(spread_numbers(node, "stride", spatial), 1) && *std::min_element(padding.begin(), padding.end()) >= 0;
  PlanStep step;
  step.kernel = plain ? "conv_f32" : "conv_data_f32";
  set_conv_window(step, node, weight);
  if (plain) step.attributes.set("padding", padding);
  step.operands = {builder.use_dense(dy, node, Format::channels_last),
                   pack_f32_weight(builder, node, ConvPacking::data), bias};
  if (plain) step.operands.push_back(-1);
  step.operands.push_back(pack_zeros(builder, Dtype::f32, weight[0]));
  step.results = {builder.make(result, Storage::arena, Format::channels_last)};
  builder.add_step(std::move(step), node);
}

bool only_widens(const Node& node) {
  return node.is("aten::to.dtype") || node.is("aten::_to_copy") || node.is("aten::to.dtype_layout");
}

// The plan's value for the sums of result `i`: the result itself where it is f32, or may become it.
int make_sums(PlanBuilder& builder, const Node& node, size_t i) {
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

void round_sums(PlanBuilder& builder, const Node& node, size_t i, int sums) {
  if (builder.type(node.results.at(i)).dtype == Dtype::f32) return;
  PlanStep step;
  step.kernel = "elementwise";
  step.attributes.set("program", std::vector<std::string>{"load 0 0 0 0 0 0"});
  step.operands = {sums};
  step.results = {builder.make(node.results.at(i))};
  builder.add_step(std::move(step), node);
}

}  // namespace

void add_conv_weight_gradient(PlanBuilder& builder, const Node& node, const Argument& x, const Argument& dy) {
  const std::vector<int64_t> weight = conv_weight_sizes(builder, node);
  const int64_t groups = groups_of(node);
  const int64_t splits = choose_conv_weight_splits(weight[0], weight[1] * groups, groups, count_taps(weight));
  PlanStep step;
  step.kernel = builder.type(x.value()).dtype == Dtype::bf16 ? "conv_weight_bf16" : "conv_weight_f32";
  set_conv_window(step, node, weight);
  step.operands = {builder.use_dense(x, node, Format::channels_last),
                   builder.use_dense(dy, node, Format::channels_last)};
  const int sums = make_sums(builder, node, 1);
  if (splits == 1) {
    step.results = {sums};
    builder.add_step(std::move(step), node);
    return round_sums(builder, node, 1, sums);
  }
  step.attributes.set("splits", splits);
  std::vector<Dimension> sizes = {splits};
  sizes.insert(sizes.end(), weight.begin(), weight.end());
  step.results = {builder.make(builder.add_value(conv_part_name(builder, node, ".pieces"), Dtype::f32, sizes))};
  PlanStep sum;
  sum.kernel = "reduce";
  sum.attributes.set("reduction", std::string("sum"));
  sum.attributes.set("first", int64_t{0});
  sum.attributes.set("count", int64_t{1});
  sum.operands = {step.results[0]};
  sum.results = {sums};
  builder.add_step(std::move(step), node);
  builder.add_step(std::move(sum), node);
  round_sums(builder, node, 1, sums);
}

void add_conv_bias_gradient(PlanBuilder& builder, const Node& node, const Argument& dy) {
  const Dimension channels = builder.type(node.results.at(2)).sizes.at(0);
  PlanStep sums;
  sums.kernel = "channel_sums";
  sums.operands = {-1, builder.use_dense(dy, node, Format::channels_last), -1, -1};
  sums.results = {builder.make(
      builder.add_value(conv_part_name(builder, node, ".blocks"), Dtype::f64, {kChannelBlocks, 2, channels}))};
  PlanStep totals;
  totals.kernel = "channel_totals";
  totals.operands = {sums.results[0]};
  const int total = make_sums(builder, node, 2);
  totals.results = {total};
  builder.add_step(std::move(sums), node);
  builder.add_step(std::move(totals), node);
  round_sums(builder, node, 2, total);
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
  const int bias = builder.use_dense(node.argument("bias"), node);
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
    (is_conv_transposed(node) ? add_forward : add_data)(builder, node, dy, -1, node.results.at(0));
}

}  // namespace lissome

// Batch norm in training form, its gradient, and the gradients of ReLU and max pooling that lie around it.
#include <algorithm>

#include "lissome/lower/candidate/elementwise/elementwise_candidates.h"
#include "lissome/lower/candidate/geometry.h"
#include "lissome/lower/candidate/norm/norm_candidates.h"
#include "lissome/lower/candidate/pool/pool_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/runtime/step/elementwise/elementwise_steps.h"
#include "lissome/runtime/step/norm/batch_norm_steps.h"
#include "lissome/runtime/step/norm/channel_steps.h"
#include "lissome/runtime/step/pool/pool_steps.h"

namespace lissome {
namespace {

Format format_of(const PlanBuilder& builder, const Argument& x) {
  return builder.type(x.value()).sizes.size() > 2 ? Format::channels_last : Format::row_major;
}

PlanValueId use_rows(PlanBuilder& builder, const Argument& x, const Node& node) {
  return builder.use_dense(x, node, format_of(builder, x));
}

// A vector of the channels, or nothing.
std::string refuse_channels(const PlanBuilder& builder, const Argument& vector) {
  return refuse_optional(builder, vector, Dtype::f32);
}

// Values of images are f32 or bf16, all alike.
Dtype dtype_of_rows(const PlanBuilder& builder, const Argument& x) {
  return x.is_value() && builder.type(x.value()).dtype == Dtype::bf16 ? Dtype::bf16 : Dtype::f32;
}

std::string refuse_rows(const PlanBuilder& builder, const Argument& x, Dtype dtype) {
  const std::string refusal = refuse_tensor(builder, x, dtype);
  if (!refusal.empty()) return refusal;
  const size_t rank = builder.type(x.value()).sizes.size();
  return rank >= 2 && rank <= 4 ? "" : "x has neither 2, 3 nor 4 dimensions";
}

// Names what a node makes beside its results.
class Maker {
 public:
  Maker(PlanBuilder& builder, const Node& node)
      : builder_(builder), name_(builder.program().value(node.results.at(0)).name) {}
  Result make(const char* what, Dtype dtype, std::vector<Dimension> sizes) {
    return {builder_.make(builder_.add_value(name_ + what, dtype, std::move(sizes)))};
  }
  // The node's result, or what stands for it where nobody asked for it.
  Result make_result(ValueId id, const char* what, const Dimension& channels) {
    return builder_.type(id).kind == ValueKind::tensor ? Result{builder_.make(id)} : make(what, Dtype::f32, {channels});
  }

 private:
  PlanBuilder& builder_;
  std::string name_;
};

Result make_sums(Maker& maker, const Dimension& channels) {
  return maker.make(".sums", Dtype::f64, {kChannelBlocks, 2, channels});
}

}  // namespace

std::string refuse_batch_norm(const PlanBuilder& builder, const Node& node) {
  if (node.argument("training") != Argument(true)) return "it does not take the statistics of the batch";
  for (const char* name : {"momentum", "eps"}) {
    const std::string refusal = refuse_number(node.argument(name), name);
    if (!refusal.empty()) return refusal;
  }
  const Dtype dtype = dtype_of_rows(builder, node.argument("input"));
  return first_refusal(
      {refuse_rows(builder, node.argument("input"), dtype), refuse_tensor(builder, Argument(node.results.at(0)), dtype),
       refuse_channels(builder, node.argument("weight")), refuse_channels(builder, node.argument("bias")),
       refuse_tensor(builder, node.argument("running_mean"), Dtype::f32),
       refuse_tensor(builder, node.argument("running_var"), Dtype::f32)});
}

void emit_batch_norm(PlanBuilder& builder, const Node& node) {
  const Argument& input = node.argument("input");
  const Dimension channels = builder.type(input.value()).sizes[1];
  const PlanValueId x = use_rows(builder, input, node);
  Maker maker(builder, node);
  ChannelSumsStep sums;
  sums.x = {x};
  sums.sums = make_sums(maker, channels);
  BatchNormStatisticsStep statistics;
  statistics.momentum = read_number(node.argument("momentum"));
  statistics.epsilon = read_number(node.argument("eps"));
  statistics.sums = {sums.sums};
  statistics.x = {x};
  statistics.weight = {builder.use_dense(node.argument("weight"), node)};
  statistics.bias = {builder.use_dense(node.argument("bias"), node)};
  statistics.running_mean = {builder.use_dense(node.argument("running_mean"), node)};
  statistics.running_variance = {builder.use_dense(node.argument("running_var"), node)};
  statistics.mean = {builder.make(node.results.at(1))};
  statistics.reciprocal_deviation = {builder.make(node.results.at(2))};
  statistics.new_mean = {builder.make(node.results.at(3))};
  statistics.new_variance = {builder.make(node.results.at(4))};
  statistics.scale = maker.make(".scale", Dtype::f32, {channels});
  statistics.shift = maker.make(".shift", Dtype::f32, {channels});
  ChannelAffineStep apply;
  apply.x = {x};
  apply.scale = {statistics.scale};
  apply.shift = {statistics.shift};
  apply.y = {builder.make(node.results.at(0), Storage::arena, format_of(builder, input))};
  builder.add_step(sums, node);
  builder.add_step(statistics, node);
  builder.add_step(apply, node);
}

std::string refuse_batch_norm_backward(const PlanBuilder& builder, const Node& node) {
  if (node.argument("train") != Argument(true)) return "it did not take the statistics of the batch";
  const Dtype dtype = dtype_of_rows(builder, node.argument("input"));
  return first_refusal({refuse_rows(builder, node.argument("grad_out"), dtype),
                        refuse_rows(builder, node.argument("input"), dtype),
                        refuse_channels(builder, node.argument("weight")),
                        refuse_tensor(builder, node.argument("save_mean"), Dtype::f32),
                        refuse_tensor(builder, node.argument("save_invstd"), Dtype::f32),
                        refuse_tensor(builder, Argument(node.results.at(0)), dtype)});
}

void emit_batch_norm_backward(PlanBuilder& builder, const Node& node) {
  const Argument& input = node.argument("input");
  const Dimension channels = builder.type(input.value()).sizes[1];
  const PlanValueId dy = use_rows(builder, node.argument("grad_out"), node), x = use_rows(builder, input, node);
  const PlanValueId mean = builder.use_dense(node.argument("save_mean"), node);
  Maker maker(builder, node);
  ChannelSumsStep sums;
  sums.x = {x}, sums.dy = {dy}, sums.mean = {mean};
  sums.sums = make_sums(maker, channels);
  BatchNormGradientsStep gradients;
  gradients.sums = {sums.sums};
  gradients.weight = {builder.use_dense(node.argument("weight"), node)};
  gradients.reciprocal_deviation = {builder.use_dense(node.argument("save_invstd"), node)};
  gradients.x = {x};
  gradients.weight_gradient = maker.make_result(node.results.at(1), ".weight_gradient", channels);
  gradients.bias_gradient = maker.make_result(node.results.at(2), ".bias_gradient", channels);
  gradients.dy_scale = maker.make(".dy_scale", Dtype::f32, {channels});
  gradients.x_scale = maker.make(".x_scale", Dtype::f32, {channels});
  gradients.shift = maker.make(".shift", Dtype::f32, {channels});
  ChannelAffineStep apply;
  apply.x = {dy};
  apply.scale = {gradients.dy_scale};
  apply.shift = {gradients.shift};
  apply.z = {x};
  apply.z_scale = {gradients.x_scale};
  apply.z_center = {mean};
  apply.y = {builder.make(node.results.at(0), Storage::arena, format_of(builder, input))};
  builder.add_step(sums, node);
  builder.add_step(gradients, node);
  builder.add_step(apply, node);
}

std::string refuse_threshold_backward(const PlanBuilder& builder, const Node& node) {
  const Argument &dy = node.argument("grad_output"), &y = node.argument("self");
  const Dtype dtype = dtype_of_rows(builder, y);
  const std::string refusal = first_refusal({refuse_tensor(builder, dy, dtype), refuse_tensor(builder, y, dtype),
                                             refuse_tensor(builder, Argument(node.result()), dtype),
                                             refuse_number(node.argument("threshold"), "threshold")});
  if (!refusal.empty()) return refusal;
  const auto& sizes = builder.type(node.result()).sizes;
  if (builder.type(dy.value()).sizes != sizes || builder.type(y.value()).sizes != sizes) return "it is broadcast";
  if (read_number(node.argument("threshold")) != 0) return "the threshold is not 0";
  if (builder.is_held(dy.value()) && builder.is_held(y.value())) return "the reference library holds all operands";
  return sizes.size() <= 5 ? "" : "more than 5 dimensions";
}

// y <= 0 ? 0 : dy; fuse_channel_steps() knows these instructions again.
void emit_threshold_backward(PlanBuilder& builder, const Node& node) {
  const ValueId dy = node.argument("grad_output").value(), y = node.argument("self").value();
  const bool last = builder.format(dy) == Format::channels_last || builder.format(y) == Format::channels_last;
  ElementwiseStep step;
  step.program = list_threshold_instructions();
  step.operands.values = {builder.use(y), builder.use(dy)};
  step.y = {builder.make(node.result(), Storage::arena, last ? Format::channels_last : Format::row_major)};
  builder.add_step(step, node);
}

std::vector<std::string> list_threshold_instructions() {
  return {"load 0 0 0 0 0 0",     "constant 1 0 0 0 0 0", "less_equal 2 0 1 0 0 0",
          "constant 3 0 0 0 0 0", "load 4 1 0 0 0 0",     "select 5 2 3 4 0 0"};
}

namespace {

constexpr const char* kPoolNumbers[] = {"kernel_size", "stride", "padding", "dilation"};

std::string refuse_pool_form(const PlanBuilder& builder, const Node& node) {
  for (const char* name : kPoolNumbers) {
    if (!read_integers(node.argument(name))) return std::string(name) + " is computed";
  }
  if (builder.type(node.argument("self").value()).sizes.size() != 4) return "x has no batch";
  const std::vector<int64_t> kernel = spread(*read_integers(node.argument("kernel_size")), 2);
  return kernel[0] * kernel[1] <= 255 ? "" : "the window has more than 255 taps";
}

}  // namespace

// Indices in the image, as torch has them, are not made: indices of taps in the window are, which only the gradient
// understands.
std::string refuse_max_pool_indices(const PlanBuilder& builder, const Node& node) {
  const Dtype dtype = dtype_of_rows(builder, node.argument("self"));
  const std::string refusal = first_refusal({refuse_tensor(builder, node.argument("self"), dtype),
                                             refuse_tensor(builder, Argument(node.results.at(0)), dtype)});
  if (!refusal.empty()) return refusal;
  if (leaves_program(builder.program(), node.results.at(1))) return "its indices leave the program";
  for (const Node* reader : find_readers(builder.program(), node.results.at(1))) {
    if (!reader->is("aten::max_pool2d_with_indices_backward")) return "its indices are read by " + reader->op.name();
    const std::string refused = refuse_max_pool_gradient_form(builder, *reader);
    if (!refused.empty()) return "its gradient cannot read indices: " + refused;
  }
  return refuse_pool_form(builder, node);
}

void emit_max_pool_indices(PlanBuilder& builder, const Node& node) {
  MaxPoolIndicesStep step;
  step.window = read_pool_window(node, 2);
  step.x = {builder.use_dense(node.argument("self"), node, Format::channels_last)};
  builder.program().value(node.results.at(1)).type.dtype = Dtype::u8;
  step.y = {builder.make(node.results.at(0), Storage::arena, Format::channels_last)};
  step.indices = {builder.make(node.results.at(1), Storage::arena, Format::channels_last)};
  builder.add_step(step, node);
}

std::string refuse_max_pool_gradient_form(const PlanBuilder& builder, const Node& node) {
  const Dtype dtype = dtype_of_rows(builder, node.argument("self"));
  return first_refusal({refuse_tensor(builder, node.argument("grad_output"), dtype),
                        refuse_tensor(builder, Argument(node.result()), dtype), refuse_pool_form(builder, node)});
}

std::string refuse_max_pool_gradient(const PlanBuilder& builder, const Node& node) {
  const std::string refusal = refuse_tensor(builder, node.argument("indices"), Dtype::u8);
  return refusal.empty() ? refuse_max_pool_gradient_form(builder, node) : "its pool has indices of torch";
}

void emit_max_pool_gradient(PlanBuilder& builder, const Node& node) {
  MaxPoolGradientStep step;
  step.window = read_pool_window(node, 2);
  step.dy = {builder.use_dense(node.argument("grad_output"), node, Format::channels_last)};
  step.indices = {builder.use(node.argument("indices"))};
  step.dx = {builder.make(node.result(), Storage::arena, Format::channels_last)};
  builder.add_step(step, node);
}

}  // namespace lissome

// Layer norm and softmax in f32 on our own kernels.
#include <cfloat>

#include "lissome/lower/candidate/norm/norm_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/runtime/step/norm/layer_norm_steps.h"
#include "lissome/runtime/step/norm/softmax_steps.h"

namespace lissome {
namespace {

std::string refuse_same(const PlanBuilder& builder, const Node& node, const Argument& x) {
  return first_refusal(
      {refuse_tensor(builder, x, Dtype::f32), refuse_tensor(builder, Argument(node.result()), Dtype::f32)});
}

}  // namespace

std::string refuse_layer_norm(const PlanBuilder& builder, const Node& node) {
  const Argument& x = node.argument("input");
  const bool root_mean_square = node.is("aten::rms_norm");
  const Argument& epsilon = node.argument("eps");
  const std::string refusal =
      first_refusal({refuse_same(builder, node, x), refuse_optional(builder, node.argument("weight"), Dtype::f32),
                     root_mean_square ? "" : refuse_optional(builder, node.argument("bias"), Dtype::f32),
                     root_mean_square && epsilon.is_none() ? "" : refuse_number(epsilon, "eps")});
  if (!refusal.empty()) return refusal;
  const auto shape = read_integers(node.argument("normalized_shape"));
  if (!shape) return "the width is computed";
  return count_elements(*shape) > 0 ? "" : "the width is zero";
}

void emit_layer_norm(PlanBuilder& builder, const Node& node) {
  LayerNormStep step;
  step.width = count_elements(*read_integers(node.argument("normalized_shape")));
  const Argument& epsilon = node.argument("eps");
  // Where none is given, rms_norm adds the distance of one to the next f32.
  step.epsilon = epsilon.is_none() ? FLT_EPSILON : read_number(epsilon);
  step.root_mean_square = node.is("aten::rms_norm");
  step.x = {builder.use_dense(node.argument("input"), node)};
  step.weight = {builder.use_dense(node.argument("weight"), node)};
  if (!step.root_mean_square) step.bias = {builder.use_dense(node.argument("bias"), node)};
  step.y = {builder.make(node.result())};
  step.statistics = node.results.size() > 1;
  if (step.statistics) {  // native_layer_norm, whose gradient reads them
    step.sum_or_mean = {builder.make(node.results[1])};
    step.factor = {builder.make(node.results[2])};
  }
  builder.add_step(step, node);
}

std::string refuse_softmax_dim(const PlanBuilder& builder, const Node& node) {
  const auto rank = static_cast<int64_t>(builder.type(node.arguments[0].value()).sizes.size());
  const auto* dim = node.argument("dim").get<int64_t>();
  if (!dim || rank == 0) return "the dimension is computed";
  const int64_t at = *dim < 0 ? *dim + rank : *dim;
  return at == rank - 1 || (at == 1 && rank == 4) ? "" : "it is neither over the last dimension nor over channels";
}

Format softmax_format(const PlanBuilder& builder, const Node& node) {
  const auto rank = static_cast<int64_t>(builder.type(node.arguments[0].value()).sizes.size());
  const int64_t dim = *node.argument("dim").get<int64_t>();
  return rank == 4 && (dim == 1 || dim == -3) ? Format::channels_last : Format::row_major;
}

std::string refuse_softmax(const PlanBuilder& builder, const Node& node) {
  const Argument& x = node.argument("self");
  const std::string refusal = refuse_same(builder, node, x);
  if (!refusal.empty()) return refusal;
  return refuse_softmax_dim(builder, node);
}

void emit_softmax(PlanBuilder& builder, const Node& node) {
  const Format format = softmax_format(builder, node);
  SoftmaxStep step;
  step.zero_unseen = node.is("aten::_safe_softmax");
  step.logarithm = node.op.name().find("log_softmax") != std::string::npos;
  step.channels = format == Format::channels_last;
  step.x = {builder.use_dense(node.argument("self"), node, format)};
  step.y = {builder.make(node.result(), Storage::arena, format)};
  builder.add_step(step, node);
}

}  // namespace lissome

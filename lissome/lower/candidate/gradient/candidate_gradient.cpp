// What training adds in f32: gradients of norms, softmax, losses and embeddings on our own kernels.
#include "lissome/lower/candidate/loss/loss_candidates.h"
#include "lissome/lower/candidate/move/move_candidates.h"
#include "lissome/lower/candidate/norm/norm_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/runtime/step/elementwise/reduce_steps.h"
#include "lissome/runtime/step/loss/nll_loss_steps.h"
#include "lissome/runtime/step/move/embedding_gradient_steps.h"
#include "lissome/runtime/step/norm/normalize_gradient_steps.h"

namespace lissome {
namespace {

// Sums over kGradientShares shares of the rows, as one value of the program.
void add_share_sum(PlanBuilder& builder, const Node& node, const Result& shares, ValueId result) {
  ReduceStep step;
  step.reduction = "sum";
  step.first = 0, step.count = 1;
  step.x = {shares.value};
  step.y = {builder.make(result)};
  builder.add_step(step, node);
}

// Of nll_loss: what it takes beside the logarithms.
std::string refuse_nll_loss_form(const PlanBuilder& builder, const Node& node) {
  const std::string refusal = first_refusal({refuse_tensor(builder, node.argument("self"), Dtype::f32),
                                             refuse_tensor(builder, node.argument("target"), Dtype::i64)});
  if (!refusal.empty()) return refusal;
  const size_t rank = builder.type(node.argument("self").value()).sizes.size();
  if (rank != 2 && rank != 4) return "there are neither rows nor images of scores";
  if (!node.argument("weight").is_none()) return "classes have weights";
  const auto* reduction = node.argument("reduction").get<int64_t>();
  if (!reduction || (*reduction != 1 && *reduction != 2)) return "the loss is neither mean nor sum";
  return node.argument("ignore_index").get<int64_t>() ? "" : "the ignored label is computed";
}

void set_nll_loss_form(LabelledValues& step, const Node& node) {
  step.mean = *node.argument("reduction").get<int64_t>() == 1;
  step.ignored = *node.argument("ignore_index").get<int64_t>();
}

// nll_loss_backward, where its gradient goes on through the logarithm of softmax that made its scores.
const Node* find_cross_entropy_gradient(const PlanBuilder& builder, const Node& node) {
  if (!node.is("aten::_log_softmax_backward_data")) return nullptr;
  const Node* maker = find_maker(builder, node.argument("grad_output").value());
  const bool loss = maker && (maker->is("aten::nll_loss_backward") || maker->is("aten::nll_loss2d_backward"));
  if (!loss || !(maker->argument("self") == node.argument("output"))) return nullptr;
  return refuse_nll_loss_form(builder, *maker).empty() ? maker : nullptr;
}

}  // namespace

std::string refuse_layer_norm_gradient(const PlanBuilder& builder, const Node& node) {
  for (const char* name : {"grad_out", "input", "mean", "rstd"}) {
    const std::string refusal = refuse_tensor(builder, node.argument(name), Dtype::f32);
    if (!refusal.empty()) return refusal;
  }
  const std::string refusal = refuse_optional(builder, node.argument("weight"), Dtype::f32);
  if (!refusal.empty()) return refusal;
  const auto shape = read_integers(node.argument("normalized_shape"));
  if (!shape || count_elements(*shape) == 0) return "the width is computed or zero";
  const Argument& wanted = node.argument("output_mask");
  if (!wanted.is_list() || wanted.list().size() != 3) return "which gradients are wanted is computed";
  return wanted.list()[0] == Argument(true) ? "" : "the gradient of x is not wanted";
}

void emit_layer_norm_gradient(PlanBuilder& builder, const Node& node) {
  const int64_t width = count_elements(*read_integers(node.argument("normalized_shape")));
  LayerNormGradientStep step;
  step.width = width;
  step.dy = {builder.use_dense(node.argument("grad_out"), node)};
  step.x = {builder.use_dense(node.argument("input"), node)};
  step.mean = {builder.use_dense(node.argument("mean"), node)};
  step.factor = {builder.use_dense(node.argument("rstd"), node)};
  step.weight = {builder.use_dense(node.argument("weight"), node)};
  step.dx = {builder.make(node.result())};
  const std::string name = builder.program().value(node.result()).name;
  const auto make_shares = [&](const char* part) {
    return builder.make(builder.add_value(name + part, Dtype::f32, {kGradientShares, width}));
  };
  step.weight_sums = {make_shares(".weight_shares")};
  step.bias_sums = {make_shares(".bias_shares")};
  builder.add_step(step, node);
  const ArgumentList& wanted = node.argument("output_mask").list();
  if (wanted[1] == Argument(true)) add_share_sum(builder, node, step.weight_sums, node.results[1]);
  if (wanted[2] == Argument(true)) add_share_sum(builder, node, step.bias_sums, node.results[2]);
}

std::string refuse_softmax_gradient(const PlanBuilder& builder, const Node& node) {
  const Argument &dy = node.argument("grad_output"), &y = node.argument("output");
  const std::string refusal =
      first_refusal({refuse_tensor(builder, dy, Dtype::f32), refuse_tensor(builder, y, Dtype::f32),
                     refuse_tensor(builder, Argument(node.result()), Dtype::f32)});
  if (!refusal.empty()) return refusal;
  return refuse_softmax_dim(builder, node);
}

namespace {

void emit_cross_entropy_gradient(PlanBuilder& builder, const Node& node, const Node& loss) {
  const Format format = softmax_format(builder, node);
  CrossEntropyGradientStep step;
  set_nll_loss_form(step, loss);
  step.logarithms = {builder.use_dense(loss.argument("self"), node, format)};
  step.labels = {builder.use_dense(loss.argument("target"), node)};
  step.dloss = {builder.use_dense(loss.argument("grad_output"), node)};
  step.counted = {builder.use_dense(loss.argument("total_weight"), node)};
  step.dx = {builder.make(node.result(), Storage::arena, format)};
  builder.add_step(step, node);
}

}  // namespace

void emit_softmax_gradient(PlanBuilder& builder, const Node& node) {
  if (const Node* loss = find_cross_entropy_gradient(builder, node)) {
    return emit_cross_entropy_gradient(builder, node, *loss);
  }
  const Format format = softmax_format(builder, node);
  SoftmaxGradientStep step;
  step.channels = format == Format::channels_last;
  step.logarithm = node.is("aten::_log_softmax_backward_data");
  step.dy = {builder.use_dense(node.argument("grad_output"), node, format)};
  step.y = {builder.use_dense(node.argument("output"), node, format)};
  step.dx = {builder.make(node.result(), Storage::arena, format)};
  builder.add_step(step, node);
}

std::string refuse_nll_loss(const PlanBuilder& builder, const Node& node) {
  return refuse_nll_loss_form(builder, node);
}

void emit_nll_loss(PlanBuilder& builder, const Node& node) {
  NllLossStep step;
  set_nll_loss_form(step, node);
  const bool images = builder.type(node.argument("self").value()).sizes.size() == 4;
  const Format format = images ? Format::channels_last : Format::row_major;
  step.logarithms = {builder.use_dense(node.argument("self"), node, format)};
  step.labels = {builder.use_dense(node.argument("target"), node)};
  step.loss = {builder.make(node.results[0])};
  step.counted = {builder.make(node.results[1])};
  builder.add_step(step, node);
}

std::string refuse_embedding_gradient(const PlanBuilder& builder, const Node& node) {
  const std::string refusal = first_refusal({refuse_tensor(builder, node.argument("grad_output"), Dtype::f32),
                                             refuse_tensor(builder, node.argument("indices"), Dtype::i64),
                                             refuse_tensor(builder, Argument(node.result()), Dtype::f32)});
  if (!refusal.empty()) return refusal;
  if (node.argument("scale_grad_by_freq") != Argument(false)) return "it is scaled by frequency";
  return node.argument("padding_idx").get<int64_t>() ? "" : "the padding index is computed";
}

void emit_embedding_gradient(PlanBuilder& builder, const Node& node) {
  EmbeddingGradientStep step;
  step.padding = *node.argument("padding_idx").get<int64_t>();
  step.dy = {builder.use_dense(node.argument("grad_output"), node)};
  step.indices = {builder.use_dense(node.argument("indices"), node)};
  step.table = {builder.make(node.result())};
  builder.add_step(step, node);
}

}  // namespace lissome

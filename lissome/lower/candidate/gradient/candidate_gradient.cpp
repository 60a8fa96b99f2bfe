// What training adds in f32: gradients of norms, softmax, losses and embeddings on our own kernels.
#include "lissome/lower/candidate/candidate_rows.h"
#include "lissome/lower/candidate/refusals.h"

namespace lissome {
namespace {

// Sums over kGradientShares shares of the rows, as one value of the program.
void add_share_sum(PlanBuilder& builder, const Node& node, int shares, ValueId result) {
  PlanStep step;
  step.kernel = "reduce";
  step.attributes.set("reduction", std::string("sum"));
  step.attributes.set("first", int64_t{0});
  step.attributes.set("count", int64_t{1});
  step.operands = {shares};
  step.results = {builder.make(result)};
  builder.add_step(std::move(step), node);
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

void set_nll_loss_form(const Node& node, PlanStep& step) {
  step.attributes.set("mean", int64_t{*node.argument("reduction").get<int64_t>() == 1});
  step.attributes.set("ignored", *node.argument("ignore_index").get<int64_t>());
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
  PlanStep step;
  step.kernel = "layer_norm_gradient";
  step.attributes.set("width", width);
  for (const char* name : {"grad_out", "input", "mean", "rstd", "weight"})
    step.operands.push_back(builder.use_dense(node.argument(name), node));
  step.results = {builder.make(node.result())};
  const std::string name = builder.program().value(node.result()).name;
  for (const char* part : {".weight_shares", ".bias_shares"})
    step.results.push_back(builder.make(builder.add_value(name + part, Dtype::f32, {kGradientShares, width})));
  const std::vector<int> made = step.results;
  builder.add_step(std::move(step), node);
  const ArgumentList& wanted = node.argument("output_mask").list();
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (wanted[i] == Argument(true)) add_share_sum(builder, node, made[i], node.results[i]);
  }
}

std::string refuse_softmax_gradient(const PlanBuilder& builder, const Node& node) {
  const Argument &dy = node.argument("grad_output"), &y = node.argument("output");
  const std::string refusal =
      first_refusal({refuse_tensor(builder, dy, Dtype::f32), refuse_tensor(builder, y, Dtype::f32),
                     refuse_tensor(builder, Argument(node.result()), Dtype::f32)});
  if (!refusal.empty()) return refusal;
  return refuse_softmax_dim(builder, node);
}

void emit_softmax_gradient(PlanBuilder& builder, const Node& node) {
  const Format format = softmax_format(builder, node);
  PlanStep step;
  if (const Node* loss = find_cross_entropy_gradient(builder, node)) {
    step.kernel = "cross_entropy_gradient";
    set_nll_loss_form(*loss, step);
    step.operands = {builder.use_dense(loss->argument("self"), node, format)};
    for (const char* name : {"target", "grad_output", "total_weight"})
      step.operands.push_back(builder.use_dense(loss->argument(name), node));
  } else {
    step.kernel = "softmax_gradient";
    if (format == Format::channels_last) step.attributes.set("channels", int64_t{1});
    if (node.is("aten::_log_softmax_backward_data")) step.attributes.set("logarithm", int64_t{1});
    for (const char* name : {"grad_output", "output"})
      step.operands.push_back(builder.use_dense(node.argument(name), node, format));
  }
  step.results = {builder.make(node.result(), Storage::arena, format)};
  builder.add_step(std::move(step), node);
}

std::string refuse_nll_loss(const PlanBuilder& builder, const Node& node) {
  return refuse_nll_loss_form(builder, node);
}

void emit_nll_loss(PlanBuilder& builder, const Node& node) {
  PlanStep step;
  step.kernel = "nll_loss";
  set_nll_loss_form(node, step);
  const bool images = builder.type(node.argument("self").value()).sizes.size() == 4;
  step.operands = {builder.use_dense(node.argument("self"), node, images ? Format::channels_last : Format::row_major),
                   builder.use_dense(node.argument("target"), node)};
  step.results = {builder.make(node.results[0]), builder.make(node.results[1])};
  builder.add_step(std::move(step), node);
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
  PlanStep step;
  step.kernel = "embedding_gradient";
  step.attributes.set("padding", *node.argument("padding_idx").get<int64_t>());
  for (const char* name : {"grad_output", "indices"})
    step.operands.push_back(builder.use_dense(node.argument(name), node));
  step.results = {builder.make(node.result())};
  builder.add_step(std::move(step), node);
}

}  // namespace lissome

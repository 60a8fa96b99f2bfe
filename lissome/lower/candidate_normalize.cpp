// Layer norm, softmax and attention in f32 on our own kernels.
#include <cfloat>
#include <cmath>

#include "lissome/lower/candidate_rows.h"
#include "lissome/lower/refusals.h"

namespace lissome {
namespace {

std::string refuse_same(const PlanBuilder& builder, const Node& node, const Argument& x) {
  return first_refusal(
      {refuse_tensor(builder, x, Dtype::f32), refuse_tensor(builder, Argument(node.result()), Dtype::f32)});
}

const Dimension* last_size(const PlanBuilder& builder, const Argument& x) {
  const std::vector<Dimension>& sizes = builder.type(x.value()).sizes;
  return sizes.empty() ? nullptr : &sizes.back();
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
  PlanStep step;
  step.kernel = "layer_norm";
  step.attributes.set("width", count_elements(*read_integers(node.argument("normalized_shape"))));
  const bool root_mean_square = node.is("aten::rms_norm");
  const Argument& epsilon = node.argument("eps");
  // Where none is given, rms_norm adds the distance of one to the next f32.
  step.attributes.set("epsilon", epsilon.is_none() ? FLT_EPSILON : read_number(epsilon));
  if (root_mean_square) step.attributes.set("root_mean_square", int64_t{1});
  step.operands = {builder.use_dense(node.argument("input"), node), -1,
                   builder.use_dense(node.argument("weight"), node),
                   root_mean_square ? -1 : builder.use_dense(node.argument("bias"), node)};
  step.results = {builder.make(node.result())};
  builder.add_step(std::move(step), node);
}

std::string refuse_softmax(const PlanBuilder& builder, const Node& node) {
  const Argument& x = node.argument("self");
  const std::string refusal = refuse_same(builder, node, x);
  if (!refusal.empty()) return refusal;
  const auto* dim = node.argument("dim").get<int64_t>();
  const auto rank = static_cast<int64_t>(builder.type(x.value()).sizes.size());
  if (!dim || rank == 0 || (*dim != -1 && *dim != rank - 1)) return "it is not over the last dimension";
  return {};
}

void emit_softmax(PlanBuilder& builder, const Node& node) {
  PlanStep step;
  step.kernel = "softmax";
  if (node.op.name().find("log_softmax") != std::string::npos) step.attributes.set("logarithm", int64_t{1});
  step.operands = {builder.use_dense(node.argument("self"), node)};
  step.results = {builder.make(node.result())};
  builder.add_step(std::move(step), node);
}

std::string refuse_attention(const PlanBuilder& builder, const Node& node) {
  const Argument& mask = node.argument("attn_mask");
  const std::string refusal = first_refusal({refuse_same(builder, node, node.argument("query")),
                                             refuse_tensor(builder, node.argument("key"), Dtype::f32),
                                             refuse_tensor(builder, node.argument("value"), Dtype::f32)});
  if (!refusal.empty()) return refusal;
  const std::string refused_form = refuse_attention_form(builder, node);
  if (!refused_form.empty() || mask.is_none()) return refused_form;
  const Dtype dtype = builder.type(mask.value()).dtype;
  if (dtype != Dtype::f32 && dtype != Dtype::boolean) return "the mask is neither f32 nor bool";
  return refuse_tensor(builder, mask, dtype);
}

std::string refuse_attention_form(const PlanBuilder& builder, const Node& node) {
  const Argument &q = node.argument("query"), &k = node.argument("key"), &v = node.argument("value"),
                 &mask = node.argument("attn_mask"), &scale = node.argument("scale");
  for (const Argument* operand : {&q, &k, &v}) {
    if (builder.type(operand->value()).sizes.size() != 4) return "q, k and v do not have 4 dimensions";
  }
  const auto& sizes = builder.type(q.value()).sizes;
  if (builder.type(k.value()).sizes[0] != sizes[0] || builder.type(v.value()).sizes[0] != sizes[0])
    return "batches are broadcast";
  const Argument& dropout = node.argument("dropout_p");
  if (!dropout.get<double>() || *dropout.get<double>() != 0) return "it drops out";
  if (!node.argument("is_causal").get<bool>()) return "causality is computed";
  if (!scale.is_none() && !refuse_number(scale, "scale").empty()) return "the scale is computed";
  if (scale.is_none() && !last_size(builder, q)->constant()) return "the size of a head varies";
  const auto heads = sizes[1].constant(), key_heads = builder.type(k.value()).sizes[1].constant();
  if (!(builder.type(k.value()).sizes[1] == sizes[1]) &&
      (!heads || !key_heads || *key_heads == 0 || *heads % *key_heads != 0)) {
    return "heads do not divide into key heads";
  }
  if (mask.is_none()) return {};
  const ValueType& type = builder.type(mask.value());
  if (type.sizes.empty() || type.sizes.size() > 4) return "the mask has an odd rank";
  return type.sizes.back() == builder.type(k.value()).sizes[2] ? "" : "keys of the mask are broadcast";
}

void emit_attention(PlanBuilder& builder, const Node& node) {
  // Any order and part will do as long as rows are dense; else a copy.
  const auto rows_of = [&](const char* name) {
    const ValueId id = node.argument(name).value();
    return builder.has_dense_rows(id) ? builder.use(id) : builder.use_dense(id, node);
  };
  const ValueId q = node.argument("query").value();
  const Argument &scale = node.argument("scale"), &mask = node.argument("attn_mask");
  PlanStep step;
  const Dtype dtype = builder.type(node.result()).dtype;
  step.kernel = dtype == Dtype::bf16 ? "attention_bf16" : "attention";
  step.attributes.set("scale", scale.is_none()
                                   ? 1 / std::sqrt(static_cast<double>(*builder.type(q).sizes[3].constant()))
                                   : read_number(scale));
  step.attributes.set("causal", int64_t{*node.argument("is_causal").get<bool>()});
  step.attributes.set("heads_last", int64_t{1});
  step.operands = {rows_of("query"), rows_of("key"), rows_of("value")};
  if (!mask.is_none()) step.operands.push_back(rows_of("attn_mask"));
  // Written as models go on with it, heads beside each other; the node's own shape is a view of that.
  const std::vector<Dimension> sizes = builder.type(node.result()).sizes;
  const ValueId heads_last = builder.add_value(builder.program().value(node.result()).name + ".heads_last", dtype,
                                               {sizes[0], sizes[2], sizes[1], sizes[3]});
  step.results = {builder.make(heads_last)};
  const int stored = step.results[0];
  builder.add_step(std::move(step), node);
  PlanStep view;
  view.kernel = "view";
  view.attributes.set("form", std::string("permute"));
  view.attributes.set("dims", std::vector<int64_t>{0, 2, 1, 3});
  view.operands = {stored};
  view.results = {builder.make(node.result(), Storage::view)};
  builder.add_step(std::move(view), node);
  builder.mark_strided(node.result(), {0, 2, 1, 3}, true);
}

}  // namespace lissome

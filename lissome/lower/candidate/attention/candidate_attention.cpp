// Attention on our own kernels, the form of training that also gives what its gradient reads, and the gradient.
#include <cmath>

#include "lissome/lower/candidate/attention/attention_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/runtime/step/attention/attention_gradient_steps.h"
#include "lissome/runtime/step/attention/attention_steps.h"
#include "lissome/runtime/step/move/view_steps.h"

namespace lissome {
namespace {

// Any order and part will do as long as rows are dense; else a copy.
Operand use_rows(PlanBuilder& builder, const Node& node, std::string_view name) {
  const ValueId id = node.argument(name).value();
  return {builder.has_dense_rows(id) ? builder.use(id) : builder.use_dense(id, node)};
}

// Sets all that the forward step and the gradient read alike.
void set_values(PlanBuilder& builder, const Node& node, AttentionValues& step) {
  const Argument& scale = node.argument("scale");
  const ValueId q = node.argument("query").value();
  step.form.scale =
      scale.is_none() ? 1 / std::sqrt(static_cast<double>(*builder.type(q).sizes[3].constant())) : read_number(scale);
  step.form.causal = *node.argument("is_causal").get<bool>();
  step.form.heads_last = true;
  step.q = use_rows(builder, node, "query");
  step.k = use_rows(builder, node, "key");
  step.v = use_rows(builder, node, "value");
  if (!node.argument("attn_mask").is_none()) step.mask = {use_rows(builder, node, "attn_mask")};
}

// A result as models go on with it, heads beside each other in memory; the value itself is a view of that.
struct HeadsLast {
  Result stored;
  ValueId value;
};
HeadsLast make_heads_last(PlanBuilder& builder, ValueId value) {
  const ValueType type = builder.type(value);
  const ValueId stored = builder.add_value(builder.program().value(value).name + ".heads_last", type.dtype,
                                           {type.sizes[0], type.sizes[2], type.sizes[1], type.sizes[3]});
  return {{builder.make(stored)}, value};
}
void add_view(PlanBuilder& builder, const Node& node, const HeadsLast& made) {
  builder.add_view({.x = {made.stored}, .form = "permute", .dims = {0, 2, 1, 3}}, node, made.value);
  builder.mark_permuted(made.value, {0, 2, 1, 3}, true);
}

}  // namespace

std::string refuse_attention(const PlanBuilder& builder, const Node& node) {
  const Argument& mask = node.argument("attn_mask");
  const std::string refusal = first_refusal({refuse_tensor(builder, node.argument("query"), Dtype::f32),
                                             refuse_tensor(builder, Argument(node.result()), Dtype::f32),
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
  if (node.op.argument_index("dropout_p") >= 0) {
    const auto* dropout = node.argument("dropout_p").get<double>();
    if (!dropout || *dropout != 0) return "it drops out";
  }
  if (!node.argument("is_causal").get<bool>()) return "causality is computed";
  if (!scale.is_none() && !refuse_number(scale, "scale").empty()) return "the scale is computed";
  const auto* factor = scale.get<double>();  // of 0: whether a mask of -inf comes before or behind it, shows
  if (factor != nullptr && *factor == 0) return "the scale is 0";
  if (scale.is_none() && !builder.type(q.value()).sizes.back().constant()) return "the size of a head varies";
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

namespace {

template <typename Step>
void emit_attention_of(PlanBuilder& builder, const Node& node) {
  Step step;
  set_values(builder, node, step);
  const HeadsLast y = make_heads_last(builder, node.result());
  step.y = y.stored;
  if constexpr (requires { step.logarithms; }) {
    if (node.results.size() > 1) step.logarithms = {builder.make(node.results[1])};
  }
  builder.add_step(step, node);
  add_view(builder, node, y);
}

}  // namespace

void emit_attention(PlanBuilder& builder, const Node& node) {
  if (builder.type(node.result()).dtype == Dtype::bf16) return emit_attention_of<AttentionBf16Step>(builder, node);
  if (node.is("lissome::attention_int8")) return emit_attention_of<AttentionU8S8Step>(builder, node);
  emit_attention_of<AttentionStep>(builder, node);
}

namespace {

std::string refuse_gradient(const PlanBuilder& builder, const Node& node, Dtype dtype) {
  const std::string refusal = first_refusal({refuse_tensor(builder, node.argument("grad_out"), dtype),
                                             refuse_tensor(builder, node.argument("out"), dtype),
                                             refuse_tensor(builder, node.argument("logsumexp"), Dtype::f32)});
  if (!refusal.empty()) return refusal;
  if (builder.is_strided_view(node.argument("logsumexp").value())) return "the logarithms are no values of their own";
  const auto& heads = builder.type(node.argument("query").value()).sizes[1];
  return builder.type(node.argument("key").value()).sizes[1] == heads ? "" : "query heads share key heads";
}

}  // namespace

std::string refuse_attention_gradient(const PlanBuilder& builder, const Node& node) {
  const std::string refusal = refuse_attention(builder, node);
  return refusal.empty() ? refuse_gradient(builder, node, Dtype::f32) : refusal;
}

std::string refuse_attention_gradient_bf16(const PlanBuilder& builder, const Node& node) {
  const std::string refusal = refuse_attention_bf16(builder, node);
  return refusal.empty() ? refuse_gradient(builder, node, Dtype::bf16) : refusal;
}

namespace {

template <typename Step>
void emit_gradient_of(PlanBuilder& builder, const Node& node) {
  Step step;
  set_values(builder, node, step);
  step.y = use_rows(builder, node, "out");
  step.logarithms = {builder.use(node.argument("logsumexp"))};
  step.dy = use_rows(builder, node, "grad_out");
  const HeadsLast dq = make_heads_last(builder, node.results.at(0));
  const HeadsLast dk = make_heads_last(builder, node.results.at(1));
  const HeadsLast dv = make_heads_last(builder, node.results.at(2));
  step.dq = dq.stored, step.dk = dk.stored, step.dv = dv.stored;
  builder.add_step(step, node);
  for (const HeadsLast& gradient : {dq, dk, dv}) add_view(builder, node, gradient);
}

}  // namespace

void emit_attention_gradient(PlanBuilder& builder, const Node& node) {
  if (builder.type(node.result()).dtype == Dtype::bf16) {
    return emit_gradient_of<AttentionGradientBf16Step>(builder, node);
  }
  emit_gradient_of<AttentionGradientStep>(builder, node);
}

}  // namespace lissome

// Products of two computed matrices on our own kernels, which read them in any order: aten::matmul, mm and bmm.
#include "lissome/lower/candidate/gemm/gemm_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/runtime/step/gemm/matmul_steps.h"

namespace lissome {
namespace {

const Argument& right_of(const Node& node) { return node.argument(node.is("aten::matmul") ? "other" : "mat2"); }

std::string refuse_products(const PlanBuilder& builder, const Node& node, Dtype dtype) {
  const Argument &left = node.argument("self"), &right = right_of(node);
  const std::string refusal = first_refusal({refuse_tensor(builder, left, dtype), refuse_tensor(builder, right, dtype),
                                             refuse_tensor(builder, Argument(node.result()), dtype)});
  if (!refusal.empty()) return refusal;
  for (const Argument* operand : {&left, &right}) {
    const size_t rank = builder.type(operand->value()).sizes.size();
    if (rank < 2 || rank > static_cast<size_t>(kMatmulBatchRank) + 2) return "an operand is no matrix";
  }
  return {};
}

template <typename Step>
Step make_products(PlanBuilder& builder, const Node& node) {
  Step step;
  step.a = {builder.use(node.argument("self"))};
  step.b = {builder.use(right_of(node))};
  return step;
}

template <typename Step>
void emit_products(PlanBuilder& builder, const Node& node) {
  auto step = make_products<Step>(builder, node);
  step.y = {builder.make(node.result())};
  builder.add_step(step, node);
}

}  // namespace

std::string refuse_matmul(const PlanBuilder& builder, const Node& node) {
  return refuse_products(builder, node, Dtype::f32);
}

std::string refuse_matmul_bf16(const PlanBuilder& builder, const Node& node) {
  return refuse_products(builder, node, Dtype::bf16);
}

void emit_matmul(PlanBuilder& builder, const Node& node) {
  if (builder.type(node.result()).dtype == Dtype::f32) {
    emit_products<MatmulF32Step>(builder, node);
  } else {
    emit_products<MatmulBf16Step>(builder, node);
  }
}

std::string refuse_add_products(const PlanBuilder& builder, const Node& node) {
  const std::string refusal = refuse_products(builder, node, Dtype::f32);
  return refusal.empty() ? refuse_tensor(builder, node.argument("sum"), Dtype::f32) : refusal;
}

void emit_add_products(PlanBuilder& builder, const Node& node) {
  auto step = make_products<MatmulF32Step>(builder, node);
  step.start = {builder.use_dense(node.argument("sum"), node)};
  step.y = {builder.make(node.result())};
  builder.add_step(step, node);
}

}  // namespace lissome

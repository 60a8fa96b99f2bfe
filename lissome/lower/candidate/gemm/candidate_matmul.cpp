// Products of two computed matrices on our own kernels, which read them in any order: aten::matmul, mm and bmm.
#include "lissome/lower/candidate/candidate_rows.h"
#include "lissome/lower/candidate/refusals.h"

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

}  // namespace

std::string refuse_matmul(const PlanBuilder& builder, const Node& node) {
  return refuse_products(builder, node, Dtype::f32);
}

std::string refuse_matmul_bf16(const PlanBuilder& builder, const Node& node) {
  return refuse_products(builder, node, Dtype::bf16);
}

void emit_matmul(PlanBuilder& builder, const Node& node) {
  PlanStep step;
  step.kernel = builder.type(node.result()).dtype == Dtype::f32 ? "matmul_f32" : "matmul_bf16";
  step.operands = {builder.use(node.argument("self")), builder.use(right_of(node))};
  step.results = {builder.make(node.result())};
  builder.add_step(std::move(step), node);
}

std::string refuse_add_products(const PlanBuilder& builder, const Node& node) {
  const std::string refusal = refuse_products(builder, node, Dtype::f32);
  return refusal.empty() ? refuse_tensor(builder, node.argument("sum"), Dtype::f32) : refusal;
}

void emit_add_products(PlanBuilder& builder, const Node& node) {
  constexpr int kAbsent = -1;
  PlanStep step;
  step.kernel = "matmul_f32";
  step.operands = {builder.use(node.argument("self")), builder.use(right_of(node)), kAbsent, kAbsent,
                   builder.use_dense(node.argument("sum"), node)};
  step.results = {builder.make(node.result())};
  builder.add_step(std::move(step), node);
}

}  // namespace lissome

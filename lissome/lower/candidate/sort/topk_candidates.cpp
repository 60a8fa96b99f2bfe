// The best of each row on our own kernel.
#include <array>

#include "lissome/lower/candidate/candidate_families.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/runtime/step/sort/topk_steps.h"

namespace lissome {
namespace {

std::string refuse_topk(const PlanBuilder& builder, const Node& node) {
  const Argument& x = node.argument("self");
  if (!x.is_value()) return "an operand is no tensor";
  const std::string refusal = first_refusal({refuse_tensor(builder, x, Dtype::f32),
                                             refuse_tensor(builder, Argument(node.results[0]), Dtype::f32),
                                             refuse_tensor(builder, Argument(node.results[1]), Dtype::i64)});
  if (!refusal.empty()) return refusal;
  if (builder.is_held(x.value())) return "the reference library holds the operand";
  const size_t rank = builder.type(x.value()).sizes.size();
  if (rank == 0 || read_dim(node.argument("dim"), rank) != static_cast<int64_t>(rank) - 1)
    return "it is not along the last dimension";
  return node.argument("largest").get<bool>() ? "" : "whether the largest are wanted is computed";
}

void emit_topk(PlanBuilder& builder, const Node& node) {
  TopkStep step;
  step.largest = *node.argument("largest").get<bool>();
  step.x = {builder.use_dense(node.argument("self"), node)};
  step.values = {builder.make(node.results[0])};
  step.positions = {builder.make(node.results[1])};
  builder.add_step(step, node);
}

constexpr std::array kTopk = {Candidate{"topk", refuse_topk, emit_topk}};
constexpr std::array kTopkLists = {CandidateList{"aten::topk", kTopk}};

}  // namespace

std::span<const CandidateList> topk_candidates() { return kTopkLists; }

}  // namespace lissome

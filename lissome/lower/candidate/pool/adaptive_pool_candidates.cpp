// Adaptive pools on our own kernel: windows that share the image out, whatever its size. Averages over all of it are
// means.
#include <array>

#include "lissome/lower/candidate/candidate_families.h"
#include "lissome/lower/candidate/elementwise/elementwise_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/runtime/step/pool/pool_steps.h"

namespace lissome {
namespace {

std::string refuse_adaptive_pool(const PlanBuilder& builder, const Node& node) {
  const Argument& x = node.argument("self");
  if (!x.is_value()) return "an operand is no tensor";
  const ValueType& type = builder.type(x.value());
  if (type.dtype != Dtype::f32 && type.dtype != Dtype::bf16) return "x is " + std::string(dtype_name(type.dtype));
  const std::string refusal = first_refusal(
      {refuse_tensor(builder, x, type.dtype), refuse_tensor(builder, Argument(node.result()), type.dtype)});
  if (!refusal.empty()) return refusal;
  if (type.sizes.size() != (node.op.name().ends_with("1d") ? 3 : 4)) return "x has no batch";
  if (node.results.size() == 1 || node.results[1] == ValueId::none) return {};
  const bool reads_indices =
      !find_readers(builder.program(), node.results[1]).empty() || leaves_program(builder.program(), node.results[1]);
  return reads_indices ? "the indices of the largest are wanted" : "";
}

void emit_adaptive_pool(PlanBuilder& builder, const Node& node) {
  PoolStep step;
  step.average = node.op.name().starts_with("aten::adaptive_avg_pool");
  step.adaptive = true;
  step.x = {builder.use_dense(node.argument("self"), node, Format::channels_last)};
  step.y = {builder.make(node.results[0], Storage::arena, Format::channels_last)};
  builder.add_step(step, node);
}

constexpr Candidate kPoolRow = {"pool", refuse_adaptive_pool, emit_adaptive_pool};
constexpr std::array kAdaptivePool = {kPoolRow};
constexpr std::array kMeanOrPool = {Candidate{"mean", refuse_mean, emit_mean}, kPoolRow};

constexpr std::array kAdaptiveLists = {
    CandidateList{"aten::adaptive_max_pool1d", kAdaptivePool},
    CandidateList{"aten::adaptive_max_pool2d", kAdaptivePool},
    CandidateList{"aten::adaptive_avg_pool1d", kAdaptivePool},
    CandidateList{"aten::adaptive_avg_pool2d", kMeanOrPool},
};

}  // namespace

std::span<const CandidateList> adaptive_pool_candidates() { return kAdaptiveLists; }

}  // namespace lissome

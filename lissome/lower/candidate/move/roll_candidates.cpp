// What goes round or is mirrored: rolls, and pads with elements of x.
#include <array>

#include "lissome/lower/candidate/candidate_families.h"
#include "lissome/lower/candidate/move/move_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/runtime/step/move/copy_steps.h"

namespace lissome {
namespace {

// How far each dimension is rolled; empty where the node says so in another way: without dims, x is rolled flat.
std::vector<int64_t> read_shifts(const PlanBuilder& builder, const Node& node) {
  const size_t rank = builder.type(node.argument("self").value()).sizes.size();
  const auto shifts = read_integers(node.argument("shifts")), dims = read_integers(node.argument("dims"));
  if (!shifts || !dims || dims->empty() || dims->size() != shifts->size()) return {};
  std::vector<int64_t> found(rank, 0);
  for (size_t i = 0; i < dims->size(); ++i) {
    const int64_t dim = read_dim(Argument((*dims)[i]), rank);
    if (dim < 0) return {};
    found[static_cast<size_t>(dim)] += (*shifts)[i];
  }
  return found;
}

std::string refuse_roll(const PlanBuilder& builder, const Node& node) {
  const Argument& x = node.argument("self");
  if (!x.is_value()) return "an operand is no tensor";
  const ValueType& type = builder.type(x.value());
  const std::string refusal = first_refusal(
      {refuse_tensor(builder, x, type.dtype), refuse_tensor(builder, Argument(node.result()), type.dtype)});
  if (!refusal.empty()) return refusal;
  if (builder.is_held(x.value())) return "the reference library holds the operand";
  if (type.sizes.size() > static_cast<size_t>(kMoveRank) || item_size(type.dtype) > 8)
    return "it has an odd rank or dtype";
  return read_shifts(builder, node).empty() ? "it rolls no dimension, or computed ones" : "";
}

void emit_roll(PlanBuilder& builder, const Node& node) {
  const ValueId x = node.argument("self").value();
  const Format format = builder.format(x);
  PadStep step;
  step.before = read_shifts(builder, node);
  step.roll = true;
  step.x = {builder.use_dense(x, node, format)};
  step.y = {builder.make(node.result(), Storage::arena, format)};
  builder.add_step(step, node);
}

constexpr std::array kRoll = {Candidate{"roll", refuse_roll, emit_roll}};
constexpr std::array kMirror = {Candidate{"pad", refuse_pad, emit_pad}};

constexpr std::array kRollLists = {
    CandidateList{"aten::roll", kRoll},
    CandidateList{"aten::reflection_pad1d", kMirror},
    CandidateList{"aten::reflection_pad2d", kMirror},
    CandidateList{"aten::reflection_pad3d", kMirror},
    CandidateList{"aten::replication_pad1d", kMirror},
    CandidateList{"aten::replication_pad2d", kMirror},
    CandidateList{"aten::replication_pad3d", kMirror},
};

}  // namespace

std::span<const CandidateList> roll_candidates() { return kRollLists; }

}  // namespace lissome

// See stage_recompute.h.
#include "lissome/train/remat/stage_recompute.h"

#include <algorithm>
#include <set>

#include "lissome/train/remat/chain_schedule.h"
#include "lissome/train/rewrite/keep_modules.h"

namespace lissome {
namespace {

constexpr size_t kMostTogether = 4;  // stages of a group
constexpr double kNearlyAll = 0.9;   // of the limit

// Bytes that a node itself needs alive while it runs, without values that stay for later readers.
int64_t count_own_bytes(const StepModel& model, const StepNode& node) {
  std::set<int> touched;
  for (const auto* values : {&node.reads, &node.results}) {
    for (const int value : *values) {
      if (const int owner = model.owner[static_cast<size_t>(value)]; owner >= 0) touched.insert(owner);
    }
  }
  int64_t bytes = node.scratch, taken_over = 0;
  for (const int owner : touched) bytes += model.bytes[static_cast<size_t>(owner)];
  for (const int value : node.in_place) {
    const auto owner = static_cast<size_t>(model.owner[static_cast<size_t>(value)]);
    taken_over = std::max(taken_over, model.bytes[owner]);
  }
  return bytes - taken_over;
}

}  // namespace

std::vector<RecomputeSet> list_stage_recompute(const StepModel& model) {
  const StepChain chain = make_step_chain(model);
  std::vector<RecomputeSet> listed;
  for (size_t together = 1; together <= std::min(kMostTogether, chain.forward.size()); ++together) {
    for (size_t phase = 0; phase < together; ++phase) {
      std::vector<int> groups(model.nodes.size(), kNoGroup);
      for (size_t stage = 0; stage < chain.forward.size(); ++stage) {
        for (const int node : chain.forward[stage])
          groups[static_cast<size_t>(node)] = static_cast<int>((stage + phase) / together);
      }
      listed.push_back(recompute_inside_groups(model, groups));
    }
  }
  return listed;
}

StepModel forbid_large_runs(StepModel model, int64_t limit) {
  const double most = kNearlyAll * static_cast<double>(limit);
  for (StepNode& node : model.nodes)
    node.repeatable = node.repeatable && static_cast<double>(count_own_bytes(model, node)) <= most;
  return model;
}

}  // namespace lissome

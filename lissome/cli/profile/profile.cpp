#include "lissome/cli/profile/profile.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "lissome/cli/console.h"

namespace lissome {
namespace {

// Means over the faster half of the calls: they leave out outliers, and unlike medians, parts add up to the whole.
void average_quiet_runs(Profile& profile, const std::vector<double>& with_clocks) {
  std::vector<size_t> runs(with_clocks.size());
  std::iota(runs.begin(), runs.end(), size_t{0});
  std::stable_sort(runs.begin(), runs.end(), [&](size_t a, size_t b) { return with_clocks[a] < with_clocks[b]; });
  runs.resize((runs.size() + 1) / 2);
  const auto average = [&](const std::vector<double>& seconds) {
    double sum = 0;
    for (size_t run : runs) sum += run < seconds.size() ? seconds[run] : 0;
    return runs.empty() ? 0 : sum / static_cast<double>(runs.size());
  };
  for (NodeTime& node : profile.nodes) node.typical = average(node.seconds);
  profile.with_clocks = average(with_clocks);
}

// The origin of a step. For a step that fuses several nodes: the first node, and the ops of all.
PlanOrigin name_origin(const Plan& plan, const StepTiming& timing) {
  if (timing.origin == nullptr) return {};
  PlanOrigin origin = *timing.origin;
  const std::vector<PlanOrigin>& all = plan.steps[static_cast<size_t>(timing.step)].origins;
  if (timing.kernel == kReferenceStep) return origin;
  for (size_t i = 1; i < all.size(); ++i) origin.op += ", " + all[i].op;
  return origin;
}

}  // namespace

// The last row is the time of a call outside of its nodes: checking inputs, making outputs, entering steps, reading
// clocks.
Profile measure_nodes(Session& session, const std::vector<TensorView>& inputs, int warmup, int runs) {
  Profile profile;
  // The step and its node -> index in profile.nodes. A node is known by its place among the origins of the step.
  std::map<std::pair<int, const PlanOrigin*>, size_t> indices;
  std::vector<double> whole, with_clocks;
  NodeTime outside;
  outside.origin.node = "(outside)";
  outside.origin.op = "checks, outputs, clocks";
  outside.kernel = "session";
  for (int i = 0; i < warmup && !Console::interrupted(); ++i) session.run(inputs);
  for (int run = 0; run < runs && (run == 0 || !Console::interrupted()); ++run) {
    profile.spans.clear();
    double inside = 0;
    const StepSink sink = [&](const StepTiming& timing) {
      const auto [index, fresh] = indices.try_emplace({timing.step, timing.origin}, profile.nodes.size());
      if (fresh) {
        profile.nodes.push_back({name_origin(session.plan(), timing),
                                 std::string(timing.kernel),
                                 std::string(timing.isa),
                                 timing.parts,
                                 {},
                                 timing.bytes,
                                 timing.products,
                                 timing.multiplied});
      }
      const double seconds = static_cast<double>(timing.nanoseconds) * 1e-9;
      profile.nodes[index->second].seconds.push_back(seconds);
      inside += seconds;
      profile.spans.push_back({timing.origin != nullptr ? timing.origin->op : "",
                               timing.origin != nullptr ? timing.origin->source : "",
                               now_nanoseconds() - timing.nanoseconds, timing.nanoseconds, 0});
    };
    const Stopwatch clocked;
    session.run(inputs, &sink);
    with_clocks.push_back(clocked.seconds());
    outside.seconds.push_back(std::max(0.0, with_clocks.back() - inside));
    const Stopwatch plain;
    session.run(inputs);
    whole.push_back(plain.seconds());
  }
  profile.nodes.push_back(std::move(outside));
  profile.whole = find_percentile(whole, 0.5);
  average_quiet_runs(profile, with_clocks);
  return profile;
}

}  // namespace lissome

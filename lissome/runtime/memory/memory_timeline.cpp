// See memory_timeline.h.
#include "lissome/runtime/memory/memory_timeline.h"

#include <algorithm>

#include "lissome/runtime/memory/footprint.h"
#include "lissome/runtime/session/binding.h"

namespace lissome {

MemoryTimeline trace_arena(const Plan& plan, std::span<const Sizes> inputs, int threads) {
  Footprint footprint = find_footprint(plan, inputs, threads);
  const Lifetimes lifetimes = find_lifetimes(plan);
  const int steps = static_cast<int>(plan.steps.size());
  MemoryTimeline timeline{
      footprint.arena_bytes, std::vector<int64_t>(plan.steps.size(), 0), std::move(footprint.scratch_bytes), -1, {}};
  const auto for_each_alive = [&](const auto& visit) {
    for (size_t i = 0; i < footprint.value_bytes.size(); ++i) {
      if (footprint.value_bytes[i] > 0 && lifetimes.first[i] >= 0) visit(i, std::min(lifetimes.last[i], steps - 1));
    }
  };
  for_each_alive([&](size_t value, int last) {
    for (int step = lifetimes.first[value]; step <= last; ++step)
      timeline.values[static_cast<size_t>(step)] += footprint.value_bytes[value];
  });
  for (int step = 0; step < steps; ++step) {
    if (timeline.peak_step < 0 || timeline.total(step) > timeline.total(timeline.peak_step)) timeline.peak_step = step;
  }
  for_each_alive([&](size_t value, int last) {
    if (lifetimes.first[value] <= timeline.peak_step && timeline.peak_step <= last)
      timeline.at_peak.push_back({footprint.value_bytes[value], lifetimes.first[value]});
  });
  std::stable_sort(timeline.at_peak.begin(), timeline.at_peak.end(),
                   [](const HeldValue& a, const HeldValue& b) { return a.bytes > b.bytes; });
  return timeline;
}

}  // namespace lissome

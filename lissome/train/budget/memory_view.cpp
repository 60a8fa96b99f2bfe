// See memory_view.h.
#include "lissome/train/budget/memory_view.h"

#include <algorithm>
#include <map>
#include <utility>

namespace lissome {
namespace {

constexpr int kSettlingMoments = 2;
constexpr int kRisingMoments = 5;
constexpr int64_t kLeastGrowth = 1 << 20;  // bytes

}  // namespace

std::vector<MemoryPlace> list_memory_places(const Plan& plan, const MemoryTimeline& timeline) {
  std::map<std::pair<std::string, std::string>, MemoryPlace> places;
  for (const HeldValue& held : timeline.at_peak) {
    const std::vector<PlanOrigin>& origins = plan.steps[static_cast<size_t>(held.step)].origins;
    const PlanOrigin origin = origins.empty() ? PlanOrigin{} : origins.front();
    MemoryPlace& place = places.try_emplace({origin.module, origin.source}).first->second;
    place.module = origin.module, place.source = origin.source;
    place.bytes += held.bytes, ++place.values;
  }
  std::vector<MemoryPlace> listed;
  for (auto& [key, place] : places) listed.push_back(std::move(place));
  std::stable_sort(listed.begin(), listed.end(),
                   [](const MemoryPlace& a, const MemoryPlace& b) { return a.bytes > b.bytes; });
  return listed;
}

bool LeakCheck::observe(int64_t allocated) {
  if (++moments_ <= kSettlingMoments || allocated <= last_) {
    start_ = last_ = allocated, rising_ = 0;
    return false;
  }
  last_ = allocated, ++rising_;
  return rising_ >= kRisingMoments && growth() >= kLeastGrowth && !std::exchange(reported_, true);
}

}  // namespace lissome

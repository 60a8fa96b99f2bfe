// A chain of stages whose inside is larger than what leaves them, as layers are.
#include "lissome/train/remat/stage_recompute.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace lissome;

namespace {

constexpr int kStages = 6;
constexpr int64_t kInner = 300, kOuter = 100;

// By stage an inner value and one that leaves it, then gradients from the last stage to the first.
StepModel make_stages() {
  StepModel model;
  const auto add = [&](std::vector<int> reads, int64_t bytes, bool forward) {
    const auto value = static_cast<int>(model.producer.size());
    model.nodes.push_back({.seconds = 1, .forward = forward, .reads = std::move(reads), .results = {value}});
    model.producer.push_back(value), model.bytes.push_back(bytes), model.owner.push_back(value);
    return value;
  };
  for (int stage = 0; stage < kStages; ++stage) {
    const int inner = add(stage > 0 ? std::vector<int>{2 * stage - 1} : std::vector<int>{}, kInner, true);
    add({inner}, kOuter, true);
  }
  int gradient = 2 * kStages - 1;
  for (int stage = kStages; stage-- > 0;) gradient = add({2 * stage, 2 * stage + 1, gradient}, kOuter, false);
  model.leaving = {gradient};
  return model;
}

int64_t find_peak(const StepModel& model, const RunOrder& schedule) {
  return judge_schedule(model, schedule, INT64_MAX).peak;
}

}  // namespace

TEST_CASE("values inside of stages are recomputed, and what leaves a group of stages is kept") {
  const StepModel model = make_stages();
  const RunOrder plain = make_plain_schedule(model);
  const std::vector<RecomputeSet> listed = list_stage_recompute(model);
  REQUIRE(listed.size() == 10);
  for (const RecomputeSet& recomputed : listed) {
    const RecomputeSchedule made = make_recompute_schedule(model, plain, recomputed);
    CHECK(check_schedule(model, made.schedule) == "");
    CHECK(find_peak(model, made.schedule) < find_peak(model, plain));
  }
  const auto recomputes_outer = [](const RecomputeSet& recomputed) {
    return std::any_of(recomputed.begin(), recomputed.end(), [](const RecomputeEntry& entry) {
      return entry.first % 2 == 1 && entry.first + 1 < 2 * kStages;  // what leaves the last enters none
    });
  };
  CHECK(!recomputes_outer(listed.front()));
  CHECK(recomputes_outer(listed.back()));
}

TEST_CASE("a node that nearly fills the limit by itself may not run again") {
  const StepModel model = make_stages();
  const auto count_repeatable = [](const StepModel& some) {
    return std::count_if(some.nodes.begin(), some.nodes.end(), [](const StepNode& node) { return node.repeatable; });
  };
  CHECK(count_repeatable(forbid_large_runs(model, 1000)) == 3 * kStages);
  // The first stage reads nothing that the step makes.
  CHECK(count_repeatable(forbid_large_runs(model, kInner + kOuter)) == 1);
}

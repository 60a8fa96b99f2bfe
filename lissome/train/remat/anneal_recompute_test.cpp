// Annealing over recompute sets reaches from the worst start what greedy searches find, and goes beyond it.
#include "lissome/train/remat/anneal_recompute.h"

#include <doctest/doctest.h>

using namespace lissome;

namespace {

constexpr int64_t kLimit = 1000;
constexpr int64_t kVisits = 2'000'000;

// Builds a step node by node; each gives one value.
struct Builder {
  StepModel model;
  int add(std::vector<int> reads, int64_t bytes, double seconds) {
    const int value = static_cast<int>(model.nodes.size());
    model.nodes.push_back({.seconds = seconds, .reads = std::move(reads), .results = {value}});
    model.producer.push_back(value), model.owner.push_back(value), model.bytes.push_back(bytes);
    return value;
  }
};

// Eight layers of two nodes and their gradients, which read both and what came.
StepModel make_layers() {
  Builder step;
  constexpr int kLayers = 8;
  for (int i = 0; i < kLayers; ++i) {
    const int inner = step.add(i > 0 ? std::vector<int>{2 * i - 1} : std::vector<int>{}, 150, 1 + 0.1 * i);
    step.add({inner}, 100, 0.2);
  }
  int gradient = 2 * kLayers - 1;
  for (int i = kLayers; i-- > 0;) gradient = step.add({2 * i, 2 * i + 1, gradient}, 100, 2);
  step.model.leaving = {gradient};
  return step.model;
}

constexpr int kNarrow = 1, kWide = 2, kLarge = 4;

// The wide value is made of the narrow one, which costs much; both are read behind a large one.
StepModel make_swap() {
  Builder step;
  const int costly = step.add({}, 50, 100);
  const int narrow = step.add({costly}, 100, 1);
  const int wide = step.add({narrow}, 500, 1);
  const int between = step.add({wide}, 10, 1);
  const int large = step.add({between}, 850, 1);
  const int after = step.add({large}, 10, 1);
  step.model.leaving = {step.add({wide, narrow, after}, 10, 1)};
  return step.model;
}

// What costs nearly all of the time stands a little above the limit beside a large value.
StepModel make_costly() {
  Builder step;
  const int costly = step.add({}, 30, 100);
  const int between = step.add({costly}, 10, 1);
  const int large = step.add({between}, 970, 1);
  const int after = step.add({large}, 10, 1);
  step.model.leaving = {step.add({costly, after}, 10, 1)};
  return step.model;
}

}  // namespace

TEST_CASE("from everything recomputed, annealing comes to no slower a schedule than greedy searches do") {
  const StepModel model = make_layers();
  const RunOrder plain = make_plain_schedule(model);
  RecomputeSet everything;
  for (int value = 0; value < static_cast<int>(model.owner.size()); ++value) {
    for (int at = value; at < static_cast<int>(plain.size()); ++at) everything.insert({value, at});
  }
  const RunOrder worst = make_recompute_schedule(model, plain, everything).schedule;
  REQUIRE(judge_schedule(model, plain, kLimit).peak > kLimit);
  const FittedSchedule greedy = fit_by_recompute(model, plain, kLimit);
  REQUIRE(greedy.fits);
  const FittedSchedule found = anneal_recompute(model, worst, kLimit, {.visits = kVisits, .seed = 1});
  CHECK(found.fits);
  CHECK(found.cost.peak <= kLimit);
  CHECK(found.cost.seconds <= greedy.cost.seconds);
  CHECK(check_schedule(model, found.schedule) == "");
  CHECK(judge_schedule(model, found.schedule, kLimit).seconds == found.cost.seconds);
  CHECK(anneal_recompute(model, worst, kLimit, {.visits = kVisits, .seed = 1}).schedule == found.schedule);
}

TEST_CASE("a value goes while the one that it is made of comes to stay") {
  const StepModel model = make_swap();
  const RunOrder plain = make_plain_schedule(model);
  const double seconds = judge_schedule(model, plain, kLimit).seconds;
  const RunOrder start = make_recompute_schedule(model, plain, {{kNarrow, kWide}}).schedule;
  const ScheduleCost before = judge_schedule(model, start, kLimit);
  REQUIRE(before.peak > kLimit);
  REQUIRE(start[static_cast<size_t>(before.peak_position)] == kLarge);
  const FittedSchedule found = anneal_recompute(model, start, kLimit, {.visits = kVisits / 20, .seed = 1});
  CHECK(found.fits);
  CHECK(found.cost.seconds == doctest::Approx(seconds + 1));  // the wide value alone is made twice
}

TEST_CASE("what fits only at great cost is found where bytes weigh more") {
  const StepModel model = make_costly();
  const RunOrder plain = make_plain_schedule(model);
  REQUIRE(judge_schedule(model, plain, kLimit).peak == kLimit + 10);
  const AnnealingOptions options{.visits = kVisits / 20, .seed = 1};
  CHECK_FALSE(anneal_recompute(model, plain, kLimit, options).fits);
  CHECK(anneal_recompute(model, plain, kLimit, {.visits = options.visits, .seed = 1, .weight = 200}).fits);
}

TEST_CASE("annealings at once find what each finds alone, one half of them from the first start") {
  const StepModel model = make_layers();
  const RunOrder plain = make_plain_schedule(model);
  const std::vector<RunOrder> starts = {plain, make_recompute_schedule(model, plain, {{2, 4}}).schedule,
                                        make_recompute_schedule(model, plain, {{8, 9}}).schedule};
  const AnnealingOptions options{.visits = kVisits / 20, .seed = 4};
  const std::vector<Annealed> annealed = anneal_at_once(model, starts, kLimit, options, 4);
  REQUIRE(annealed.size() == 4);
  const size_t begun[] = {0, 1, 0, 2};
  for (size_t i = 0; i < annealed.size(); ++i) {
    CHECK(annealed[i].start == begun[i]);
    const AnnealingOptions alone{.visits = options.visits, .seed = options.seed + static_cast<uint32_t>(i)};
    CHECK(annealed[i].found.schedule == anneal_recompute(model, starts[begun[i]], kLimit, alone).schedule);
  }
}

TEST_CASE("the recompute set of a schedule gives the schedule again, with everything computed where it is read") {
  const StepModel model = make_layers();
  const RunOrder plain = make_plain_schedule(model);
  const RecomputeSet recomputed = {{2, 4}, {3, 6}, {8, 9}};
  const RecomputeSchedule made = make_recompute_schedule(model, plain, recomputed);
  REQUIRE(made.schedule.size() > plain.size());
  CHECK(make_recompute_schedule(model, plain, find_recompute_set(model, made.schedule)).schedule == made.schedule);
  CHECK(find_recompute_set(model, plain).empty());
}

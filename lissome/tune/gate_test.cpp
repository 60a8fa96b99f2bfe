// The judge is judged: on a machine whose clock, noise and true ratios are made up, how often it accepts steps that
// bring nothing, and how often it finds those that do.
#include "lissome/tune/gate.h"

#include <ATen/core/ivalue.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "lissome/base.h"
#include "lissome/measure.h"

namespace lissome {
namespace {

enum class Noise { normal, skewed, drifting, bursty, two_states, periodic };
constexpr std::array<std::pair<Noise, const char*>, 6> kNoises = {{{Noise::normal, "normal"},
                                                                   {Noise::skewed, "skewed"},
                                                                   {Noise::drifting, "drifting"},
                                                                   {Noise::bursty, "bursty"},
                                                                   {Noise::two_states, "two states"},
                                                                   {Noise::periodic, "periodic"}}};
constexpr double kCall = 5e-3;  // seconds of one call without noise
#ifdef __SANITIZE_ADDRESS__
constexpr int kSearches = 100;
#else
constexpr int kSearches = 2000;
#endif
constexpr int kClaims = 10;  // steps that a search judges

// A shared machine: calls move its clock by their time and by what the noise adds.
class Machine {
 public:
  Machine(Noise noise, uint64_t seed) : noise_(noise), random_(seed) {}

  double now() const { return now_; }
  void call(double seconds) {
    now_ += seconds * factor() * std::max(0.5, 1 + 0.01 * normal_(random_)) + stolen(seconds);
  }

 private:
  double factor() {
    switch (noise_) {
      case Noise::normal: return std::max(0.5, 1 + 0.02 * normal_(random_));
      case Noise::skewed: return 1 + 0.04 * exponential_(random_);
      case Noise::drifting: return 1 + 0.1 * now_;  // 40 % slower at the end of a comparison of four seconds
      case Noise::bursty: return uniform_(random_) < 0.05 ? 1.5 + exponential_(random_) : 1;
      case Noise::two_states: return in_slow_state() ? 1.35 : 1;
      case Noise::periodic: return 1;
    }
    return 1;
  }
  bool in_slow_state() {
    while (now_ >= next_change_) slow_ = !slow_, next_change_ += 0.04 * exponential_(random_);
    return slow_;
  }
  // A timer of four calls' period takes a fifth of a call: in step with every second round.
  double stolen(double seconds) {
    if (noise_ != Noise::periodic || now_ < next_tick_) return 0;
    while (next_tick_ <= now_) next_tick_ += 4 * kCall;
    return 0.2 * seconds;
  }

  Noise noise_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::exponential_distribution<double> exponential_;
  std::uniform_real_distribution<double> uniform_;
  double now_ = 0, next_change_ = 0, next_tick_ = 0;
  bool slow_ = false;
};

// A step whose calls take `ratio` of the time before, on this machine. Sessions whose memory lies well or badly are
// faster or slower by up to `luck`.
Verdict judge(Machine& machine, double ratio, double luck, uint64_t seed, int64_t memory_after = 100,
              bool confirm = true) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> lucky(1 - luck, 1 + luck);
  const auto open = [&] {
    const double before = kCall * lucky(random), after = kCall * ratio * lucky(random);
    return Calls{[&machine, before] { machine.call(before); }, [&machine, after] { machine.call(after); }};
  };
  return judge_speed({open(), open, {100, memory_after, {}}, {}, {}},
                     {.confirm = confirm, .now = [&machine] { return machine.now(); }});
}

int count_accepted(Noise noise, double ratio, double luck, int claims, int64_t memory_after = 100) {
  int accepted = 0;
  for (int i = 0; i < claims; ++i) {
    Machine machine(noise, static_cast<uint64_t>(i));
    accepted += judge(machine, ratio, luck, static_cast<uint64_t>(i), memory_after).accepted;
  }
  return accepted;
}

std::string percent(int count, int of) { return format_percent(static_cast<double>(count) / of); }

TEST_CASE("steps that bring nothing are accepted in at most 1 % of claims and of searches") {
  for (const auto& [noise, name] : kNoises) {
    int claims = 0, searches = 0;
    for (int search = 0; search < kSearches; ++search) {
      Machine machine(noise, static_cast<uint64_t>(search));  // goes on from step to step, as a machine does
      int accepted = 0;
      for (int claim = 0; claim < kClaims; ++claim) {
        accepted += judge(machine, 1, 0.02, static_cast<uint64_t>(search * kClaims + claim)).accepted;
      }
      claims += accepted, searches += accepted > 0;
    }
    MESSAGE(std::string(name) << " noise: accepted in " << percent(claims, kSearches * kClaims) << " of claims, "
                              << percent(searches, kSearches) << " of searches");
    CHECK(claims <= kSearches * kClaims / 100);
    CHECK(searches <= kSearches / 100);
  }
}

TEST_CASE("a gain that is a little less than 1 % is not taken for one, without a second look too") {
  for (const auto& [noise, name] : kNoises) {
    int accepted = 0;
    for (int i = 0; i < kSearches; ++i) {
      Machine machine(noise, static_cast<uint64_t>(i));
      accepted += judge(machine, 0.9905, 0, static_cast<uint64_t>(i), 100, false).accepted;
    }
    MESSAGE(std::string(name) << " noise: accepted in " << percent(accepted, kSearches));
    CHECK(accepted <= kSearches / 100);
  }
}

TEST_CASE("steps that cost time are not accepted for the memory that they save") {
  for (const auto& [noise, name] : kNoises) {
    const int accepted = count_accepted(noise, 1.01, 0, kSearches, 50);
    MESSAGE(std::string(name) << " noise: accepted in " << percent(accepted, kSearches));
    CHECK(accepted <= kSearches / 100);
  }
}

TEST_CASE("a gain of 3 % is found in at least 95 % of claims") {
  for (const auto& [noise, name] : kNoises) {
    const int accepted = count_accepted(noise, 0.97, 0, kSearches);
    MESSAGE(std::string(name) << " noise: found in " << percent(accepted, kSearches));
    CHECK(accepted >= kSearches * 95 / 100);
  }
}

TEST_CASE("a large gain is decided at the first look") {
  for (const auto& [noise, name] : kNoises) {
    CAPTURE(name);
    Machine machine(noise, 1);
    const Verdict verdict = judge(machine, 0.6, 0, 1);
    CHECK(verdict.accepted);
    CHECK(machine.now() < 1);  // 25 rounds of 8 ms and the warm-up, not 4 seconds
    CHECK(verdict.ratio.interval.low < 0.6);
    CHECK(verdict.ratio.interval.high > 0.6);
  }
}

TEST_CASE("a gain that new memory does not show is refused with the ratio that it had there") {
  Machine machine(Noise::normal, 1);
  const Calls lucky{[&] { machine.call(kCall); }, [&] { machine.call(0.9 * kCall); }};
  const Calls plain{[&] { machine.call(kCall); }, [&] { machine.call(kCall); }};
  const Verdict verdict = judge_speed({lucky, [&] { return plain; }, {100, 100, {}}, {}, {}},
                                      {.now = [&machine] { return machine.now(); }});
  CHECK_FALSE(verdict.accepted);
  CHECK(verdict.reason.starts_with("the gain does not last: "));
}

TEST_CASE("a step beyond the memory goal is refused however fast it is, unless it needs less than before") {
  const auto judge_memory = [](int64_t before, int64_t after) {
    Machine machine(Noise::normal, 1);
    const Calls calls{[&] { machine.call(kCall); }, [&] { machine.call(kCall / 2); }};
    return judge_speed({calls, [&] { return calls; }, {before, after, 60}, {}, {}},
                       {.now = [&machine] { return machine.now(); }});
  };
  const Verdict more = judge_memory(80, 90), less = judge_memory(100, 90), inside = judge_memory(50, 60);
  CHECK(more.over_goal);
  CHECK_FALSE(more.accepted);
  CHECK(more.reason == "needs 90 B, the memory goal is 60 B");
  CHECK_FALSE(less.over_goal);
  CHECK(less.accepted);
  CHECK(inside.accepted);
}

TEST_CASE("a slower step is kept where it brings a goal for bytes closer and misses no other") {
  const auto judge_need = [](const Need& memory, const Need& size, std::optional<double> latency) {
    Machine machine(Noise::normal, 1);
    const Calls calls{[&] { machine.call(kCall); }, [&] { machine.call(2 * kCall); }};
    return judge_speed({calls, [&] { return calls; }, memory, size, latency},
                       {.now = [&machine] { return machine.now(); }});
  };
  const Need none{100, 100, {}};
  const Verdict size = judge_need(none, {100, 50, 60}, {});
  CHECK(size.accepted);
  CHECK(size.reason.starts_with("comes closer to the size goal of 60 B: 50 B instead of 100 B; "));
  CHECK(judge_need({100, 80, 60}, none, {}).accepted);
  CHECK_FALSE(judge_need(none, {100, 99, 60}, {}).accepted);           // a trifle
  CHECK_FALSE(judge_need(none, {55, 50, 60}, {}).accepted);            // met already
  CHECK_FALSE(judge_need(none, {100, 50, {}}, {}).accepted);           // not asked for
  CHECK_FALSE(judge_need({50, 70, 60}, {100, 50, 60}, {}).accepted);   // misses another
  CHECK_FALSE(judge_need(none, {100, 50, 60}, 1.5 * kCall).accepted);  // too slow then
  CHECK(judge_need(none, {100, 50, 60}, 3 * kCall).accepted);
}

}  // namespace
}  // namespace lissome

#include "lissome/tune/gate.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace lissome {
namespace {

constexpr double kConfidence = 0.999;  // high, because an accepted step is final
constexpr double kLeastGain = 0.01;    // smallest gain that is worth a step
constexpr double kLeastSaving = 0.02;  // smallest saving of memory that is worth a step
constexpr int kLeastRounds = 25, kMostRounds = 400;
constexpr int kLooks = 6;  // at 25, 50, 100, 200 and 400 rounds, and when the time is up
constexpr double kDecided = 1 - (1 - kConfidence) / kLooks;  // of each look, so that kConfidence is that of all
// The addresses of memory alone can make one session of a plan several per cent faster than another of the same plan. A
// gain of this size counts only if new sessions over fresh copies of the plans show it each time. Noise has been
// excluded before: what is asked of each is less than of the first.
constexpr double kBeyondLuck = 0.85;
constexpr int kConfirmations = 6;
constexpr double kConfirmed = 0.9;

// "0.3 % faster, within noise (-5.4 % to +3.6 %)", with the interval of the time in brackets, or "4.21 times as fast
// (4.02 to 4.47)" from a factor of two on.
std::string format_ratio(const Ratio& ratio) {
  char text[96];
  const auto& [low, high] = ratio.interval;
  if (high < 0.5) {
    std::snprintf(text, sizeof text, "%.2f times as fast (%.2f to %.2f)", 1 / ratio.median, 1 / high, 1 / low);
    return text;
  }
  const bool noise = low <= 1 && high >= 1;
  std::snprintf(text, sizeof text, "%.1f %% %s%s (%+.1f %% to %+.1f %%)", 100 * std::abs(ratio.median - 1),
                ratio.median <= 1 ? "faster" : "slower", noise ? ", within noise" : "", 100 * (low - 1),
                100 * (high - 1));
  return text;
}

// A copy of the variant whose plan has other addresses in memory.
std::shared_ptr<Session> open_elsewhere(const Variant& variant) {
  auto plan = std::make_shared<Plan>(*variant.plan);
  for (PlanArray& array : plan->arrays) {
    if (array.array.storage != nullptr) array.array = copy_array(array.array.view());
  }
  return std::make_shared<Session>(std::move(plan), SessionOptions{.threads = variant.lowering.threads});
}

bool is_smaller(const Need& need) {
  return static_cast<double>(need.after) < (1 - kLeastSaving) * static_cast<double>(need.before);
}

std::string describe_excess(const char* name, const Need& need) {
  return "needs " + format_bytes(need.after) + ", the " + name + " goal is " + format_bytes(*need.goal);
}

std::string describe_approach(const char* name, const Need& need) {
  return std::string("comes closer to the ") + name + " goal of " + format_bytes(*need.goal) + ": " +
         format_bytes(need.after) + " instead of " + format_bytes(need.before);
}

// Empty if it brings no goal for bytes closer, or would miss that for latency instead.
std::string find_approach(const Rivals& rivals, const Verdict& verdict) {
  if (rivals.latency_goal && verdict.seconds_after > *rivals.latency_goal &&
      verdict.seconds_after > verdict.seconds_before)
    return {};
  if (rivals.memory.comes_closer()) return describe_approach("memory", rivals.memory);
  return rivals.size.comes_closer() ? describe_approach("size", rivals.size) : std::string();
}

// The ratio after / before. Ends at the first look that decides: a gain that is worth a step, or a ratio above
// `useless`.
Interleaved compare_calls(const Calls& calls, double confidence, double seconds, double useless,
                          const GateOptions& options) {
  InterleaveOptions interleave;
  interleave.warmup = 5;
  interleave.rounds = kMostRounds;
  interleave.least_rounds = kLeastRounds;
  interleave.seconds = seconds;
  interleave.confidence = confidence;
  interleave.should_stop = options.should_stop;
  interleave.now = options.now;
  interleave.decided = [&](const std::vector<std::vector<double>>& times) {
    const Interval interval = estimate_ratio(times[1], times[0], confidence).interval;
    return interval.high < 1 - kLeastGain || interval.low > useless;
  };
  return compare_interleaved({{"before", calls.before}, {"after", calls.after}}, interleave);
}

// Empty if every pair of fresh sessions is faster too, else the first ratio that is not.
std::string find_contradiction(const Rivals& rivals, const GateOptions& options) {
  for (int i = 0; i < kConfirmations; ++i) {
    const Interleaved timing =
        compare_calls(rivals.open_elsewhere(), kConfirmed, options.seconds / kConfirmations, 1 - kLeastGain, options);
    if (timing.ratios[1].median >= 1 - kLeastGain) return format_ratio(timing.ratios[1]);
  }
  return {};
}

}  // namespace

bool Need::comes_closer() const { return goal && before > *goal && is_smaller(*this); }

Rivals open_rivals(Variant& before, Variant& after, const Bench& bench, const Goal& goal) {
  const auto calls_of = [&bench](auto old_session, auto new_session) {
    return Calls{[old_session, &bench] { old_session->run(bench.views); },
                 [new_session, &bench] { new_session->run(bench.views); }};
  };
  return {calls_of(before.session.get(), after.session.get()),
          [calls_of, &before, &after] { return calls_of(open_elsewhere(before), open_elsewhere(after)); },
          {measure_memory(before, bench), measure_memory(after, bench), goal.memory},
          {count_file_bytes(before), count_file_bytes(after), goal.size},
          goal.latency};
}

Verdict judge_speed(const Rivals& rivals, const GateOptions& options) {
  const bool smaller = is_smaller(rivals.memory);
  const Interleaved timing =
      compare_calls(rivals.calls, kDecided, options.seconds, smaller ? 1 : 1 - kLeastGain, options);
  Verdict verdict;
  verdict.seconds_before = timing.summaries[0].median;
  verdict.seconds_after = timing.summaries[1].median;
  verdict.ratio = timing.ratios[1];
  verdict.ratio.confidence = kConfidence;
  verdict.over_goal = rivals.memory.exceeds() || rivals.size.exceeds();
  const std::string approach = verdict.over_goal ? std::string() : find_approach(rivals, verdict);
  const bool faster = verdict.ratio.interval.high < 1 - kLeastGain;
  const bool not_slower = verdict.ratio.interval.high <= 1;
  const std::string figures = format_ratio(verdict.ratio);
  if (verdict.over_goal) {
    verdict.reason = rivals.memory.exceeds()
                         ? describe_excess("memory", rivals.memory)
                         : "its file, with the record of the search, " + describe_excess("size", rivals.size);
  } else if (!approach.empty()) {
    verdict.accepted = true;
    verdict.reason = approach + "; " + figures;
  } else if (faster) {
    const bool beyond_luck = !options.confirm || verdict.ratio.interval.high < kBeyondLuck;
    const std::string contradiction = beyond_luck ? std::string() : find_contradiction(rivals, options);
    verdict.accepted = contradiction.empty();
    verdict.reason =
        verdict.accepted ? figures : "the gain does not last: " + figures + ", in fresh sessions " + contradiction;
  } else if (smaller && not_slower) {
    verdict.accepted = true;
    const double share = static_cast<double>(rivals.memory.after) / static_cast<double>(rivals.memory.before);
    verdict.reason = "takes " + format_percent(1 - share) + " less memory and is not slower: " + figures;
  } else {
    const bool sure_gain = verdict.ratio.interval.high < 1;
    verdict.reason = (sure_gain ? "less than " + format_percent(kLeastGain) + " for sure: " : std::string()) + figures;
  }
  return verdict;
}

}  // namespace lissome

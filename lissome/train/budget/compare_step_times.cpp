#include "lissome/train/budget/compare_step_times.h"

#include <cstdio>

#include "lissome/measure.h"

namespace lissome {
namespace {

constexpr int kRounds = 7;
constexpr double kLeastGain = 0.9;  // largest ratio that pays

}  // namespace

StepComparison compare_step_times(const std::function<void()>& first, const std::function<void()>& second) {
  const Interleaved times = compare_interleaved({{"first", first, first}, {"second", second, second}},
                                                {.warmup = 0, .rounds = kRounds, .least_rounds = kRounds});
  const Ratio& ratio = times.ratios[1];
  char text[100];
  std::snprintf(text, sizeof text, "%.2f times as long [%.2f, %.2f]", ratio.median, ratio.interval.low,
                ratio.interval.high);
  return {ratio.interval.high <= kLeastGain, text};
}

}  // namespace lissome

#include "lissome/measure/compare_interleaved.h"

#include "lissome/base.h"
#include "lissome/measure/clock.h"

namespace lissome {

Interleaved compare_interleaved(const std::vector<Contender>& contenders, const InterleaveOptions& options) {
  LISSOME_CHECK(!contenders.empty() && options.rounds > 0, "nothing to compare");
  Interleaved result;
  const auto stopped = [&] { return options.should_stop && options.should_stop(); };
  result.seconds.resize(contenders.size());
  for (const Contender& contender : contenders) {
    result.names.push_back(contender.name);
    for (int i = 0; i < options.warmup && !stopped(); ++i) contender.run();
  }
  const Stopwatch whole;
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t step = 0; step < contenders.size(); ++step) {
      const size_t index = round % 2 == 0 ? step : contenders.size() - 1 - step;
      if (contenders[index].wake) contenders[index].wake();
      const Stopwatch watch;
      contenders[index].run();
      result.seconds[index].push_back(watch.seconds());
    }
    const bool enough = round + 1 >= options.least_rounds;
    if (enough && options.seconds > 0 && whole.seconds() >= options.seconds) break;
    if (stopped()) break;
  }
  for (size_t i = 0; i < contenders.size(); ++i) {
    result.summaries.push_back(summarize(result.seconds[i]));
    result.ratios.push_back(estimate_ratio(result.seconds[i], result.seconds[0], options.confidence, options.seed));
  }
  return result;
}

}  // namespace lissome

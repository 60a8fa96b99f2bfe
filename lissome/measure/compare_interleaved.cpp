#include "lissome/measure/compare_interleaved.h"

#include <cstdint>
#include <numeric>
#include <utility>

#include "lissome/base.h"
#include "lissome/measure/clock.h"

namespace lissome {
namespace {

// Fisher and Yates, by splitmix64 (Steele, Lea, Flood 2014): the same order with every standard library.
class DrawnOrder {
 public:
  explicit DrawnOrder(size_t count) : order_(count) { std::iota(order_.begin(), order_.end(), size_t{0}); }
  const std::vector<size_t>& next() {
    for (size_t left = order_.size(); left > 1; --left) std::swap(order_[left - 1], order_[draw() % left]);
    return order_;
  }

 private:
  uint64_t draw() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::vector<size_t> order_;
  uint64_t state_ = 0;
};

double read_steady_clock() { return static_cast<double>(now_nanoseconds()) * 1e-9; }

}  // namespace

Interleaved compare_interleaved(const std::vector<Contender>& contenders, const InterleaveOptions& options) {
  LISSOME_CHECK(!contenders.empty() && options.rounds > 0, "nothing to compare");
  Interleaved result;
  const auto stopped = [&] { return options.should_stop && options.should_stop(); };
  result.seconds.resize(contenders.size());
  for (const Contender& contender : contenders) {
    result.names.push_back(contender.name);
    for (int i = 0; i < options.warmup && !stopped(); ++i) contender.run();
  }
  const std::function<double()> now = options.now ? options.now : read_steady_clock;
  const double start = now();
  int next_look = options.least_rounds;
  DrawnOrder order(contenders.size());
  for (int round = 0; round < options.rounds; ++round) {
    for (const size_t index : order.next()) {
      if (contenders[index].wake) contenders[index].wake();
      const double before = now();
      contenders[index].run();
      result.seconds[index].push_back(now() - before);
    }
    if (stopped()) break;
    if (round + 1 < options.least_rounds) continue;
    if (options.seconds > 0 && now() - start >= options.seconds) break;
    if (round + 1 < next_look) continue;
    if (options.decided && options.decided(result.seconds)) break;
    next_look *= 2;
  }
  for (size_t i = 0; i < contenders.size(); ++i) {
    result.summaries.push_back(summarize(result.seconds[i]));
    result.ratios.push_back(estimate_ratio(result.seconds[i], result.seconds[0], options.confidence));
  }
  return result;
}

}  // namespace lissome

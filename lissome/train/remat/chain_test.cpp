// The dynamic program against an exhaustive search over what can be in memory, which knows nothing of its recurrence.
#include "lissome/train/remat/chain.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <queue>
#include <random>
#include <tuple>

using namespace lissome;

namespace {

// Inputs of stages that are stored (bit i), the option by which each stage is saved (-1: not), and how many stages have
// run backward.
struct Memory {
  unsigned stored = 1;
  std::vector<int> saved;
  int done = 0;

  auto operator<=>(const Memory&) const = default;
};

// Dijkstra over these states. Only a chain in which each stage's output is all that crosses.
class Search {
 public:
  Search(const Chain& chain, int64_t memory)
      : chain_(chain), memory_(memory), count_(static_cast<int>(chain.stages.size())) {}

  double run() {
    reach({1, std::vector<int>(static_cast<size_t>(count_), -1), 0}, 0);
    while (!open_.empty()) {
      const auto [time, state] = open_.top();
      open_.pop();
      if (time > best_.at(state)) continue;
      if (state.done == count_) return time;
      leave(state, time);
    }
    return -1;
  }

 private:
  const ChainStage& stage(int i) const { return chain_.stages[static_cast<size_t>(i)]; }
  int64_t output(int i) const {
    return i + 1 < count_ ? chain_.crossing[static_cast<size_t>(i)][static_cast<size_t>(i + 1)] : 0;
  }

  // What a stage saved holds its output; its input need not be stored beside the save of the stage before.
  int64_t count_bytes(const Memory& state) const {
    int64_t bytes = 0;
    for (int i = 0; i < count_; ++i) {
      const int option = state.saved[static_cast<size_t>(i)];
      if (option >= 0) bytes += stage(i).options[static_cast<size_t>(option)].saved;
      if (i > 0 && (state.stored >> i & 1) != 0) bytes += output(i - 1);
    }
    return bytes;
  }
  bool has_input(const Memory& state, int i) const {
    return (state.stored >> i & 1) != 0 || (i > 0 && state.saved[static_cast<size_t>(i - 1)] >= 0);
  }

  void reach(const Memory& state, double time) {
    const auto found = best_.find(state);
    if (found != best_.end() && found->second <= time) return;
    best_[state] = time;
    open_.emplace(time, state);
  }

  void leave(const Memory& state, double time) {
    const int64_t bytes = count_bytes(state);
    for (int i = 1; i < count_; ++i) {
      // Once a stage is saved, its input stays for its backward pass: what the program calls stored is stored.
      if ((state.stored >> i & 1) == 0 || state.saved[static_cast<size_t>(i)] >= 0) continue;
      Memory next = state;
      next.stored &= ~(1U << i);
      reach(next, time);
    }
    for (int i = 0; i < count_ - state.done; ++i) {
      if (!has_input(state, i)) continue;
      if (i + 1 < count_ && bytes + stage(i).unsaved_peak <= memory_) {
        Memory next = state;
        next.stored |= 1U << (i + 1);
        reach(next, time + stage(i).forward);
      }
      for (size_t k = 0; k < stage(i).options.size(); ++k) {
        const StageOption& option = stage(i).options[k];
        if (state.saved[static_cast<size_t>(i)] >= 0 || bytes + option.forward_peak > memory_) continue;
        Memory next = state;
        next.saved[static_cast<size_t>(i)] = static_cast<int>(k);
        reach(next, time + stage(i).forward);
      }
    }
    const int last = count_ - state.done - 1;
    const int option = state.saved[static_cast<size_t>(last)];
    if (option < 0 || !has_input(state, last)) return;
    const StageOption& way = stage(last).options[static_cast<size_t>(option)];
    if (bytes - way.saved + way.backward_peak > memory_) return;
    Memory next = state;
    next.saved[static_cast<size_t>(last)] = -1;
    ++next.done;
    reach(next, time + stage(last).backward + way.extra);
  }

  using Entry = std::pair<double, Memory>;
  const Chain& chain_;
  const int64_t memory_;
  const int count_;
  std::map<Memory, double> best_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open_;
};

Chain draw_chain(std::mt19937& random, int stages, int options) {
  std::uniform_int_distribution<int64_t> size(1, 10);
  std::uniform_real_distribution<double> time(1, 10);
  Chain chain;
  std::vector<int64_t> outputs;
  for (int i = 0; i < stages; ++i) outputs.push_back(100 * size(random));
  for (int i = 0; i < stages; ++i) {
    ChainStage stage{time(random), 2 * time(random), 0, {}};
    const int64_t output = i + 1 < stages ? outputs[static_cast<size_t>(i)] : 0;
    stage.unsaved_peak = output + 50 * size(random);
    int64_t inner = 300 * size(random);
    double extra = 0;
    for (int k = 0; k < options; ++k) {
      const int64_t gradient = 100 * size(random);
      stage.options.push_back({extra, output + inner, std::max(stage.unsaved_peak, output + inner),
                               output + inner + gradient + (k > 0 ? 100 : 0)});
      extra += time(random) / 4, inner = inner * 2 / 3;
    }
    chain.stages.push_back(std::move(stage));
  }
  const auto count = static_cast<size_t>(stages);
  chain.crossing.assign(count, std::vector<int64_t>(count, 0));
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = i + 1; j < count; ++j) chain.crossing[i][j] = outputs[j - 1];
  }
  return chain;
}

}  // namespace

TEST_CASE("the dynamic program finds what an exhaustive search finds, within what slots lose") {
  std::mt19937 random(7);
  int compared = 0, recomputed = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const int stages = 2 + trial % 4;
    const Chain chain = draw_chain(random, stages, 1 + trial % 3);
    int64_t all = 0;
    double least = 0;
    for (const ChainStage& stage : chain.stages) {
      all += stage.options[0].backward_peak;
      least += stage.forward + stage.backward;
    }
    for (const double share : {1.0, 0.8, 0.6, 0.45}) {
      const auto memory = static_cast<int64_t>(share * static_cast<double>(all));
      const ChainPlan plan = plan_chain(chain, memory, 2000);
      const double exact = Search(chain, memory).run();
      if (exact < 0) CHECK(plan.steps.empty());
      if (plan.steps.empty()) continue;
      ++compared;
      recomputed += exact > least * 1.001 ? 1 : 0;
      CHECK(plan.seconds >= exact * 0.9999);
      CHECK(plan.seconds <= exact * 1.01);
    }
  }
  CHECK(compared > 100);
  CHECK(recomputed > 30);
}

TEST_CASE("a chain without room for its first stage has no plan; with room for all, nothing runs twice") {
  std::mt19937 random(8);
  const Chain chain = draw_chain(random, 5, 2);
  CHECK(plan_chain(chain, 50).steps.empty());
  CHECK(plan_chain(chain, 0).steps.empty());
  const ChainPlan plan = plan_chain(chain, 1 << 20);
  CHECK(plan.steps.size() == 10);
}

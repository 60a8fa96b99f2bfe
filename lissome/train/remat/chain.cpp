// See chain.h. best(i, k, m) is the least time in which the stages i to k run forward and backward with m slots beside
// the input of stage i. Either stage i runs in one of its ways and the rest follows (option >= 0), or the stages before
// some j run unsaved, j to k follow, and i to j - 1 are recomputed from their input (split = j).
#include "lissome/train/remat/chain.h"

#include <algorithm>
#include <limits>

#include "lissome/base.h"

namespace lissome {
namespace {

constexpr float kNever = std::numeric_limits<float>::infinity();

struct Choice {
  int16_t option = -1, split = -1;
};

class ChainPlanner {
 public:
  ChainPlanner(const Chain& chain, int64_t memory, int slots)
      : chain_(chain),
        count_(static_cast<int>(chain.stages.size())),
        slot_((memory + slots - 1) / slots),
        slots_(static_cast<int>(memory / slot_)) {
    const auto cells = static_cast<size_t>(count_) * static_cast<size_t>(count_) * static_cast<size_t>(slots_ + 1);
    time_.assign(cells, kNever);
    choice_.assign(cells, {});
  }

  ChainPlan plan() {
    for (int length = 0; length < count_; ++length) {
      for (int first = 0; first + length < count_; ++first) solve(first, first + length);
    }
    ChainPlan plan;
    const float seconds = *times(0, count_ - 1, slots_);
    if (seconds == kNever) return plan;
    plan.seconds = seconds;
    emit(0, count_ - 1, slots_, plan.steps);
    return plan;
  }

 private:
  const ChainStage& stage(int i) const { return chain_.stages[static_cast<size_t>(i)]; }
  int64_t crossing(int from, int to) const {
    return chain_.crossing[static_cast<size_t>(from)][static_cast<size_t>(to)];
  }
  int round_up(int64_t bytes) const {
    return static_cast<int>(std::min<int64_t>((bytes + slot_ - 1) / slot_, slots_ + 1));
  }
  size_t cell(int first, int last, int memory) const {
    return (static_cast<size_t>(first) * static_cast<size_t>(count_) + static_cast<size_t>(last)) *
               static_cast<size_t>(slots_ + 1) +
           static_cast<size_t>(memory);
  }
  float* times(int first, int last, int memory) { return &time_[cell(first, last, memory)]; }
  Choice* choices(int first, int last, int memory) { return &choice_[cell(first, last, memory)]; }

  void solve(int first, int last) {
    const std::vector<StageOption>& options = stage(first).options;
    for (size_t i = 0; i < options.size(); ++i) try_option(first, last, static_cast<int>(i));
    int running = 0;
    double forward = 0;
    for (int split = first + 1; split <= last; ++split) {
      const int before = split - 1;
      running = std::max(running, round_up(crossing(first, before) + stage(before).unsaved_peak));
      forward += stage(before).forward;
      try_split(first, last, split, running, static_cast<float>(forward));
    }
  }

  void try_option(int first, int last, int number) {
    const StageOption& option = stage(first).options[static_cast<size_t>(number)];
    const auto own = static_cast<float>(stage(first).forward + stage(first).backward + option.extra);
    const int saved = round_up(option.saved);
    const int least = round_up(std::max({option.forward_peak, option.backward_peak, option.saved}));
    for (int memory = least; memory <= slots_; ++memory) {
      const float rest = first == last ? 0 : *times(first + 1, last, memory - saved);
      offer(first, last, memory, own + rest, {static_cast<int16_t>(number), -1});
    }
  }

  void try_split(int first, int last, int split, int running, float forward) {
    const int kept = round_up(crossing(first, split));
    for (int memory = std::max(running, kept); memory <= slots_; ++memory) {
      const float rest = *times(split, last, memory - kept), repeated = *times(first, split - 1, memory);
      offer(first, last, memory, forward + rest + repeated, {-1, static_cast<int16_t>(split)});
    }
  }

  void offer(int first, int last, int memory, float time, Choice choice) {
    float* const best = times(first, last, memory);
    if (time >= *best) return;
    *best = time;
    *choices(first, last, memory) = choice;
  }

  void emit(int first, int last, int memory, std::vector<ChainStep>& steps) {
    using Kind = ChainStep::Kind;
    const Choice choice = *choices(first, last, memory);
    if (choice.split >= 0) {
      for (int i = first; i < choice.split; ++i) steps.push_back({Kind::forward_unsaved, i, 0});
      emit(choice.split, last, memory - round_up(crossing(first, choice.split)), steps);
      emit(first, choice.split - 1, memory, steps);
      return;
    }
    steps.push_back({Kind::forward_saved, first, choice.option});
    const StageOption& option = stage(first).options[static_cast<size_t>(choice.option)];
    if (first < last) emit(first + 1, last, memory - round_up(option.saved), steps);
    steps.push_back({Kind::backward, first, choice.option});
  }

  const Chain& chain_;
  const int count_;
  const int64_t slot_;  // bytes
  const int slots_;
  std::vector<float> time_;
  std::vector<Choice> choice_;
};

}  // namespace

ChainPlan plan_chain(const Chain& chain, int64_t memory, int slots) {
  LISSOME_CHECK(!chain.stages.empty() && slots > 0);
  if (memory <= 0) return {};
  return ChainPlanner(chain, memory, slots).plan();
}

}  // namespace lissome

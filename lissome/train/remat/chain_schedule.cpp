// See chain_schedule.h.
#include "lissome/train/remat/chain_schedule.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace lissome {
namespace {

constexpr size_t kMostStages = 48;
// Values of a stage that are much smaller than its largest (by this factor) are saved in every option. All subsets of
// the others are tried.
constexpr int64_t kSmallShare = 64;
constexpr size_t kMostTried = 10;
constexpr size_t kMostOptions = 10;
// The chain is planned for these multiples of the limit. Then its limit is moved at most kFittings times, until the
// schedule fits.
constexpr double kShares[] = {1, 1.5, 2, 3};
constexpr int kFittings = 4;

// By owner: the nodes that read its memory, each once.
std::vector<std::vector<int>> list_readers(const StepModel& model) {
  std::vector<std::vector<int>> readers(model.owner.size());
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    for (const int value : model.nodes[i].reads) {
      const int owner = model.owner[static_cast<size_t>(value)];
      if (owner < 0) continue;
      std::vector<int>& list = readers[static_cast<size_t>(owner)];
      if (list.empty() || list.back() != static_cast<int>(i)) list.push_back(static_cast<int>(i));
    }
  }
  return readers;
}

class ChainMaker {
 public:
  explicit ChainMaker(const StepModel& model) : model_(model), readers_(list_readers(model)) {}

  StepChain make() {
    split_forward();
    if (made_.forward.size() < 2) return {};
    split_backward();
    add_crossing();
    for (size_t i = 0; i < made_.forward.size(); ++i) add_stage(static_cast<int>(i));
    return std::move(made_);
  }

 private:
  const StepNode& node(int position) const { return model_.nodes[static_cast<size_t>(position)]; }
  int64_t bytes(int value) const { return model_.bytes[static_cast<size_t>(value)]; }
  int owner(int value) const { return model_.owner[static_cast<size_t>(value)]; }
  bool is_owner(int value) const { return owner(value) == value; }

  int last_forward_reader(int value) const {
    int last = model_.producer[static_cast<size_t>(value)];
    for (const int reader : readers_[static_cast<size_t>(value)]) {
      if (node(reader).forward) last = std::max(last, reader);
    }
    return last;
  }

  bool is_read_backward(int value) const {
    const std::vector<int>& readers = readers_[static_cast<size_t>(value)];
    return std::any_of(readers.begin(), readers.end(), [&](int reader) { return !node(reader).forward; });
  }

  // Cuts the forward pass behind nodes after which fewer bytes are still to be read forward than before and after.
  void split_forward() {
    std::vector<int> order;
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      if (model_.nodes[i].forward) order.push_back(static_cast<int>(i));
    }
    std::vector<int64_t> change(model_.nodes.size() + 1, 0);
    for (const int position : order) {
      for (const int value : node(position).results) {
        if (!is_owner(value)) continue;
        change[static_cast<size_t>(position)] += bytes(value);
        change[static_cast<size_t>(last_forward_reader(value))] -= bytes(value);
      }
    }
    std::vector<int64_t> crossing;
    int64_t now = 0;
    size_t next = 0;
    for (const int position : order) {
      for (; next <= static_cast<size_t>(position); ++next) now += change[next];
      crossing.push_back(now);
    }
    std::vector<std::pair<int64_t, size_t>> cuts = find_valleys(crossing);
    std::sort(cuts.begin(), cuts.end());
    if (cuts.size() >= kMostStages) cuts.resize(kMostStages - 1);
    std::set<size_t> ends;
    for (const auto& [size, at] : cuts) ends.insert(at);
    made_.forward.emplace_back();
    stage_of_.assign(model_.nodes.size(), -1);
    for (size_t i = 0; i < order.size(); ++i) {
      stage_of_[static_cast<size_t>(order[i])] = static_cast<int>(made_.forward.size()) - 1;
      made_.forward.back().push_back(order[i]);
      if (ends.contains(i) && i + 1 < order.size()) made_.forward.emplace_back();
    }
  }

  static std::vector<std::pair<int64_t, size_t>> find_valleys(const std::vector<int64_t>& crossing) {
    std::vector<std::pair<int64_t, size_t>> valleys;
    for (size_t i = 1; i + 1 < crossing.size(); ++i) {
      if (crossing[i] >= crossing[i - 1] || crossing[i] == 0) continue;
      size_t next = i + 1;
      while (next < crossing.size() && crossing[next] == crossing[i]) ++next;
      if (next < crossing.size() && crossing[next] > crossing[i]) valleys.emplace_back(crossing[i], i);
    }
    return valleys;
  }

  // A backward node belongs to the earliest stage that this node or an earlier backward node reads.
  void split_backward() {
    made_.backward.resize(made_.forward.size());
    int stage = static_cast<int>(made_.forward.size()) - 1;
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      if (model_.nodes[i].forward) continue;
      int reads = -1;
      for (const int value : model_.nodes[i].reads) {
        if (owner(value) < 0) continue;
        reads = std::max(reads, stage_of_[static_cast<size_t>(model_.producer[static_cast<size_t>(owner(value))])]);
      }
      if (reads >= 0) stage = std::min(stage, reads);
      made_.backward[static_cast<size_t>(stage)].push_back(static_cast<int>(i));
    }
  }

  void add_crossing() {
    const size_t count = made_.forward.size();
    made_.chain.crossing.assign(count, std::vector<int64_t>(count, 0));
    for (const std::vector<int>& stage : made_.forward) {
      for (const int position : stage) {
        for (const int value : node(position).results) {
          if (!is_owner(value)) continue;
          const int from = stage_of_[static_cast<size_t>(position)];
          const int to = stage_of_[static_cast<size_t>(last_forward_reader(value))];
          for (int i = 0; i <= from; ++i) {
            for (int j = from + 1; j <= to; ++j)
              made_.chain.crossing[static_cast<size_t>(i)][static_cast<size_t>(j)] += bytes(value);
          }
        }
      }
    }
  }

  double sum_seconds(const std::vector<int>& nodes) const {
    double seconds = 0;
    for (const int position : nodes) seconds += node(position).seconds;
    return seconds;
  }

  void add_stage(int number) {
    const auto at = static_cast<size_t>(number);
    ChainStage stage;
    stage.forward = sum_seconds(made_.forward[at]);
    stage.backward = sum_seconds(made_.backward[at]);
    stage.unsaved_peak = find_forward_peak(number, {}, false);
    made_.backward_runs.emplace_back();
    for (const std::set<int>& recomputed : choose_recomputed(number)) {
      std::vector<int> runs = insert_runs(number, recomputed);
      StageOption option;
      option.extra = sum_seconds(runs) - stage.backward;
      option.saved = count_saved(number, recomputed);
      option.forward_peak = find_forward_peak(number, recomputed, true);
      option.backward_peak = find_backward_peak(number, recomputed, runs);
      stage.options.push_back(option);
      made_.backward_runs.back().push_back(std::move(runs));
    }
    made_.chain.stages.push_back(std::move(stage));
  }

  bool leaves(int value, int number) const {
    return stage_of_[static_cast<size_t>(last_forward_reader(value))] > number;
  }

  std::vector<int> list_made(int number) const {
    std::vector<int> values;
    for (const int position : made_.forward[static_cast<size_t>(number)]) {
      for (const int value : node(position).results) {
        if (is_owner(value)) values.push_back(value);
      }
    }
    return values;
  }

  int64_t count_saved(int number, const std::set<int>& recomputed) const {
    int64_t saved = 0;
    for (const int value : list_made(number)) {
      if (leaves(value, number) || (is_read_backward(value) && !recomputed.contains(value))) saved += bytes(value);
    }
    return saved;
  }

  // Most bytes of the stage's own while its forward nodes run.
  int64_t find_forward_peak(int number, const std::set<int>& recomputed, bool save) const {
    const std::vector<int>& nodes = made_.forward[static_cast<size_t>(number)];
    int64_t now = 0, peak = 0;
    std::multimap<int, int64_t> ends;
    for (const int position : nodes) {
      for (const int value : node(position).results) {
        if (!is_owner(value)) continue;
        now += bytes(value);
        const bool stays = leaves(value, number) || (save && is_read_backward(value) && !recomputed.contains(value));
        if (!stays) ends.emplace(last_forward_reader(value), bytes(value));
      }
      peak = std::max(peak, now + node(position).scratch);
      for (auto end = ends.begin(); end != ends.end() && end->first <= position; end = ends.erase(end))
        now -= end->second;
    }
    return peak;
  }

  // Most bytes of kept forward values, recomputed values and gradients while the backward nodes of the stage run.
  int64_t find_backward_peak(int number, const std::set<int>& recomputed, const std::vector<int>& runs) const {
    std::vector<int> last(model_.owner.size(), -1);
    for (size_t i = 0; i < runs.size(); ++i) {
      for (const int value : node(runs[i]).reads) {
        if (owner(value) >= 0) last[static_cast<size_t>(owner(value))] = static_cast<int>(i);
      }
    }
    // Gradients of later stages that earlier stages read too, and outputs, stay beyond the last node.
    const int end = static_cast<int>(runs.size());
    int64_t now = 0, peak = 0;
    std::vector<int64_t> frees(runs.size() + 1, 0);
    for (const int value : list_made(number)) {
      if (recomputed.contains(value) || !(is_read_backward(value) || leaves(value, number))) continue;
      now += bytes(value);
      if (last[static_cast<size_t>(value)] >= 0)
        frees[static_cast<size_t>(last[static_cast<size_t>(value)])] += bytes(value);
    }
    const std::set<int> inside(made_.backward[static_cast<size_t>(number)].begin(),
                               made_.backward[static_cast<size_t>(number)].end());
    for (size_t value = 0; value < model_.owner.size(); ++value) {
      const int id = static_cast<int>(value), producer = model_.producer[value];
      if (producer < 0 || !is_owner(id) || node(producer).forward || inside.contains(producer)) continue;
      if (!inside.empty() && producer < *inside.begin() && last[value] >= 0) {
        now += bytes(id);
        if (!is_read_after(id, number)) frees[static_cast<size_t>(last[value])] += bytes(id);
      }
    }
    for (size_t i = 0; i < runs.size(); ++i) {
      for (const int value : node(runs[i]).results) {
        if (!is_owner(value)) continue;
        now += bytes(value);
        const bool beyond = !node(runs[i]).forward && is_read_after(value, number);
        const int until = beyond ? end : std::max(last[static_cast<size_t>(value)], static_cast<int>(i));
        frees[static_cast<size_t>(until)] += bytes(value);
      }
      peak = std::max(peak, now + node(runs[i]).scratch);
      now -= frees[i];
    }
    return peak;
  }

  bool is_read_after(int value, int number) const {
    const std::vector<int>& readers = readers_[static_cast<size_t>(value)];
    const std::vector<int>& nodes = made_.backward[static_cast<size_t>(number)];
    return !readers.empty() && !nodes.empty() && readers.back() > nodes.back();
  }

  // The stage's backward nodes, each behind the nodes that it needs recomputed.
  std::vector<int> insert_runs(int number, const std::set<int>& recomputed) const {
    std::vector<int> order;
    std::set<int> ran;  // forward nodes of the stage
    const auto provide = [&](const auto& self, int value) -> void {
      const int source = owner(value);
      if (source < 0) return;
      const int producer = model_.producer[static_cast<size_t>(source)];
      if (stage_of_[static_cast<size_t>(producer)] != number) return;
      const bool kept = !recomputed.contains(source) && (is_read_backward(source) || leaves(source, number));
      const auto run = [&](int position) {
        if (ran.contains(position)) return;
        for (const int read : node(position).reads) self(self, read);
        ran.insert(position);
        order.push_back(position);
      };
      if (!kept && node(producer).repeatable) run(producer);
      if (value == source || !(ran.contains(producer))) return;
      // A view of recomputed memory is taken anew.
      run(model_.producer[static_cast<size_t>(value)]);
    };
    for (const int position : made_.backward[static_cast<size_t>(number)]) {
      for (const int value : node(position).reads) provide(provide, value);
      order.push_back(position);
    }
    return order;
  }

  // Sets of values to recompute: of all subsets of the larger values those that no other subset beats in both time and
  // memory. The empty set comes first.
  std::vector<std::set<int>> choose_recomputed(int number) const {
    std::vector<int> values;
    int64_t largest = 0;
    for (const int value : list_made(number)) {
      const bool repeatable = node(model_.producer[static_cast<size_t>(value)]).repeatable;
      if (!is_read_backward(value) || leaves(value, number) || !repeatable) continue;
      values.push_back(value);
      largest = std::max(largest, bytes(value));
    }
    std::erase_if(values, [&](int value) { return bytes(value) < largest / kSmallShare; });
    std::stable_sort(values.begin(), values.end(), [&](int a, int b) { return bytes(a) > bytes(b); });
    if (values.size() > kMostTried) values.resize(kMostTried);
    struct Tried {
      double extra;
      int64_t saved;
      std::set<int> recomputed;
    };
    std::vector<Tried> tried;
    const int64_t all = count_saved(number, {});
    for (size_t mask = 0; mask < (size_t{1} << values.size()); ++mask) {
      std::set<int> recomputed;
      for (size_t i = 0; i < values.size(); ++i) {
        if ((mask >> i & 1) != 0) recomputed.insert(values[i]);
      }
      int64_t saved = all;
      for (const int value : recomputed) saved -= bytes(value);
      const double extra = sum_closure(number, recomputed);
      tried.push_back({extra, saved, std::move(recomputed)});
    }
    std::stable_sort(tried.begin(), tried.end(), [](const Tried& a, const Tried& b) {
      return a.extra != b.extra ? a.extra < b.extra : a.saved < b.saved;
    });
    std::vector<std::set<int>> chosen;
    int64_t saved = std::numeric_limits<int64_t>::max();
    std::vector<std::set<int>> front;
    for (Tried& one : tried) {
      if (one.saved >= saved) continue;
      saved = one.saved;
      front.push_back(std::move(one.recomputed));
    }
    for (size_t i = 0; i < std::min(front.size(), kMostOptions); ++i)
      chosen.push_back(front[front.size() <= kMostOptions ? i : i * (front.size() - 1) / (kMostOptions - 1)]);
    return chosen;
  }

  double sum_closure(int number, const std::set<int>& recomputed) const {
    if (recomputed.empty()) return 0;
    double seconds = 0;
    std::vector<int> open(recomputed.begin(), recomputed.end());
    std::set<int> ran;
    while (!open.empty()) {
      const int source = open.back();
      open.pop_back();
      const int producer = model_.producer[static_cast<size_t>(source)];
      if (stage_of_[static_cast<size_t>(producer)] != number || !node(producer).repeatable) continue;
      const bool kept = !recomputed.contains(source) && (is_read_backward(source) || leaves(source, number));
      if (kept || !ran.insert(producer).second) continue;
      seconds += node(producer).seconds;
      for (const int value : node(producer).reads) {
        if (owner(value) >= 0) open.push_back(owner(value));
      }
    }
    return seconds;
  }

  const StepModel& model_;
  const std::vector<std::vector<int>> readers_;
  std::vector<int> stage_of_;  // by node; -1 for backward nodes
  StepChain made_;
};

}  // namespace

StepChain make_step_chain(const StepModel& model) { return ChainMaker(model).make(); }

RunOrder make_chain_schedule(const StepModel& model, const StepChain& chain, const ChainPlan& plan) {
  RunOrder schedule;
  std::vector<bool> ran(model.nodes.size(), false);
  const auto append = [&](const std::vector<int>& nodes) {
    for (const int position : nodes) {
      const auto at = static_cast<size_t>(position);
      if (ran[at] && !model.nodes[at].repeatable) continue;
      ran[at] = true;
      schedule.push_back(position);
    }
  };
  for (const ChainStep& step : plan.steps) {
    const auto stage = static_cast<size_t>(step.stage);
    if (step.kind == ChainStep::Kind::backward) {
      append(chain.backward_runs[stage][static_cast<size_t>(step.option)]);
    } else {
      append(chain.forward[stage]);
    }
  }
  return remove_unread_runs(model, schedule);
}

std::vector<RunOrder> fit_by_chain(const StepModel& model, int64_t limit) {
  const StepChain chain = make_step_chain(model);
  if (chain.forward.empty()) return {};
  std::vector<RunOrder> schedules;
  for (const double share : kShares) {
    const auto wanted = static_cast<int64_t>(static_cast<double>(limit) * share);
    // Memory that the chain does not model, such as gradients that pile up, is subtracted from what it may use.
    int64_t memory = wanted;
    for (int i = 0; i < kFittings && memory > 0; ++i) {
      const ChainPlan plan = plan_chain(chain.chain, memory);
      if (plan.steps.empty()) break;
      RunOrder schedule = make_chain_schedule(model, chain, plan);
      const int64_t peak = judge_schedule(model, schedule, limit).peak;
      const bool last = peak <= wanted || i + 1 == kFittings;
      const bool known = std::find(schedules.begin(), schedules.end(), schedule) != schedules.end();
      if (last && !known) schedules.push_back(std::move(schedule));
      if (last) break;
      memory -= std::max(peak - wanted, memory / 50);
    }
  }
  return schedules;
}

RunOrder remove_unread_runs(const StepModel& model, const RunOrder& schedule) {
  // From the end: whether each value is read before its node runs again.
  std::vector<bool> read(model.producer.size(), false);
  for (const int value : model.leaving) read[static_cast<size_t>(value)] = true;
  std::vector<int> runs(model.nodes.size(), 0);
  for (const int position : schedule) ++runs[static_cast<size_t>(position)];
  RunOrder kept;
  for (size_t i = schedule.size(); i-- > 0;) {
    const StepNode& node = model.nodes[static_cast<size_t>(schedule[i])];
    const bool wanted = std::any_of(node.results.begin(), node.results.end(),
                                    [&](int value) { return read[static_cast<size_t>(value)]; });
    if (!wanted && node.repeatable && runs[static_cast<size_t>(schedule[i])] > 1) {
      --runs[static_cast<size_t>(schedule[i])];
      continue;
    }
    for (const int value : node.results) read[static_cast<size_t>(value)] = false;
    for (const int value : node.reads) read[static_cast<size_t>(value)] = true;
    for (const int value : node.names) read[static_cast<size_t>(value)] = true;
    kept.push_back(schedule[i]);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

}  // namespace lissome

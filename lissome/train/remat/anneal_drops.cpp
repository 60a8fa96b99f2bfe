// See anneal_drops.h.
#include "lissome/train/remat/anneal_drops.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <iterator>
#include <random>

#include "lissome/train/remat/chain_schedule.h"

namespace lissome {
namespace {

// Energies are shares of the plain schedule's time; a node that is above the limit by all of it weighs as `weight`.
constexpr double kFirstWeight = 1, kLastWeight = 2;
constexpr double kFirstHeat = 0.02, kLastHeat = 0.0005;
constexpr int64_t kLeastShare = 256;  // values below this part of the limit are left alone

constexpr size_t kMostStarts = 3;
// Of the limit. Chains for much less than it cost more, but what many nodes have above it no annealing mends.
constexpr double kStartShares[] = {0.8, 0.9, 0.94, 0.96, 0.98, 1, 1.02, 1.05};

double find_energy(const ScheduleCost& cost, double plain_seconds, int64_t limit, double weight) {
  return cost.seconds / plain_seconds + weight * cost.excess / static_cast<double>(limit);
}

class Annealing {
 public:
  Annealing(const StepModel& model, const RunOrder& start, int64_t limit, const AnnealingOptions& options)
      : model_(model),
        plain_(make_plain_schedule(model)),
        limit_(limit),
        judge_(model, plain_, limit),
        options_(options),
        random_(options.seed) {
    plain_seconds_ = judge_schedule(model, plain_, limit).seconds;
    best_.schedule = start;
    best_.cost = judge_schedule(model, start, limit);
    best_.fits = best_.cost.peak <= limit;
    drops_ = find_drops(model, start);
    DropSchedule made = judge_.make(drops_);
    const ScheduleCost cost = judge_.judge(made);
    accept(std::move(made), cost);
  }

  FittedSchedule run() {
    for (int64_t visited = 0; visited < options_.visits && !droppable_.empty();) {
      const double done = static_cast<double>(visited) / static_cast<double>(options_.visits);
      weight_ = options_.weight * kFirstWeight * std::pow(kLastWeight / kFirstWeight, done);
      const double heat = kFirstHeat * std::pow(kLastHeat / kFirstHeat, done);
      Drops before = drops_;
      change();
      DropSchedule made = judge_.make(drops_);
      visited += static_cast<int64_t>(made.schedule.size());
      const ScheduleCost cost = judge_.judge(made);
      const double worse = energy(cost) - energy(cost_);
      if (worse <= 0 || draw() < std::exp(-worse / heat)) {
        accept(std::move(made), cost);
      } else {
        drops_ = std::move(before);
      }
    }
    return best_;
  }

 private:
  double draw() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  template <typename Items>
  auto pick(const Items& items) {
    return *std::next(items.begin(), static_cast<std::ptrdiff_t>(random_() % items.size()));
  }

  double energy(const ScheduleCost& cost) const { return find_energy(cost, plain_seconds_, limit_, weight_); }

  void accept(DropSchedule made, const ScheduleCost& cost) {
    cost_ = cost;
    list_droppable(made);
    FittedSchedule fitted{std::move(made.schedule), cost, cost.peak <= limit_};
    if (is_better_fit(fitted, best_)) best_ = std::move(fitted);
  }

  // Every drop that the schedule leaves room for.
  void list_droppable(const DropSchedule& made) {
    droppable_.clear();
    for (size_t at = 0; at < made.schedule.size(); ++at) {
      const StepNode& node = model_.nodes[static_cast<size_t>(made.schedule[at])];
      for (const auto* values : {&node.reads, &node.results}) {
        for (const int value : *values) {
          const int owner = model_.owner[static_cast<size_t>(value)];
          if (owner >= 0 && may_drop(owner) && judge_.is_read_next(owner, made.purpose[at]))
            droppable_.push_back({owner, made.purpose[at]});
        }
      }
    }
  }

  bool may_drop(int owner) const {
    const int maker = model_.producer[static_cast<size_t>(owner)];
    return maker >= 0 && model_.nodes[static_cast<size_t>(maker)].repeatable &&
           model_.bytes[static_cast<size_t>(owner)] >= limit_ / kLeastShare;
  }

  void change() {
    const double kind = draw();
    if (kind < 0.35 || drops_.empty()) {
      const auto drop = pick(droppable_);
      if (drops_.erase(drop) == 0) drops_.insert(drop);
    } else if (kind < 0.7) {
      const auto drop = pick(droppable_);
      drops_.insert(drop);
      if (const std::set<int> dropped = list_dropped_sources(drop.first); !dropped.empty()) keep(pick(dropped));
    } else {
      drops_.erase(pick(drops_));
      if (kind < 0.85) drops_.insert(pick(droppable_));
    }
  }

  bool is_dropped(int owner) const {
    const auto drop = drops_.lower_bound({owner, -1});
    return drop != drops_.end() && drop->first == owner;
  }
  void keep(int owner) { drops_.erase(drops_.lower_bound({owner, -1}), drops_.lower_bound({owner + 1, -1})); }

  // What is dropped of all that making this value anew may take.
  std::set<int> list_dropped_sources(int value) const {
    std::set<int> found;
    std::vector<int> open = {value};
    while (!open.empty()) {
      const int maker = model_.producer[static_cast<size_t>(open.back())];
      open.pop_back();
      if (maker < 0) continue;
      for (const int read : model_.nodes[static_cast<size_t>(maker)].reads) {
        const int owner = model_.owner[static_cast<size_t>(read)];
        if (owner >= 0 && owner != value && is_dropped(owner) && found.insert(owner).second) open.push_back(owner);
      }
    }
    return found;
  }

  const StepModel& model_;
  const RunOrder plain_;
  const int64_t limit_;
  const DropJudge judge_;
  const AnnealingOptions options_;
  std::mt19937 random_;
  double plain_seconds_ = 0, weight_ = kFirstWeight;
  Drops drops_;
  ScheduleCost cost_;  // of drops_
  FittedSchedule best_;
  std::vector<std::pair<int, int>> droppable_;
};

}  // namespace

FittedSchedule anneal_drops(const StepModel& model, const RunOrder& schedule, int64_t limit,
                            const AnnealingOptions& options) {
  return Annealing(model, schedule, limit, options).run();
}

std::vector<Annealed> anneal_at_once(const StepModel& model, const std::vector<RunOrder>& starts, int64_t limit,
                                     const AnnealingOptions& options, int count) {
  std::vector<Annealed> annealed;
  std::vector<std::future<FittedSchedule>> running;
  for (int i = 0; i < count; ++i) {
    AnnealingOptions seeded = options;
    seeded.seed += static_cast<uint32_t>(i);
    const size_t others = starts.size() - 1;
    const size_t start = seeded.seed % 2 == 0 || others == 0 ? 0 : 1 + seeded.seed / 2 % others;
    annealed.push_back({start, {}});
    running.push_back(
        std::async(std::launch::async, anneal_drops, std::cref(model), std::cref(starts[start]), limit, seeded));
  }
  for (size_t i = 0; i < running.size(); ++i) annealed[i].found = running[i].get();
  return annealed;
}

std::vector<RunOrder> list_annealing_starts(const StepModel& model, const RunOrder& schedule, int64_t limit) {
  std::vector<RunOrder> starts = {schedule};
  for (const double share : kStartShares) {
    for (const RunOrder& base : fit_by_chain(model, static_cast<int64_t>(share * static_cast<double>(limit)))) {
      RunOrder found = fit_by_drops(model, base, limit).schedule;
      if (std::find(starts.begin(), starts.end(), found) == starts.end()) starts.push_back(std::move(found));
    }
  }
  const double plain_seconds = judge_schedule(model, make_plain_schedule(model), limit).seconds;
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < starts.size(); ++i) {
    order.emplace_back(find_energy(judge_schedule(model, starts[i], limit), plain_seconds, limit, kFirstWeight), i);
  }
  std::sort(order.begin(), order.end());
  if (order.size() > kMostStarts) order.resize(kMostStarts);
  std::vector<RunOrder> best;
  for (const auto& [weight, i] : order) best.push_back(std::move(starts[i]));
  return best;
}

}  // namespace lissome

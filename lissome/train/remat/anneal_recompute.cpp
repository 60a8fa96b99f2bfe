// See anneal_recompute.h.
#include "lissome/train/remat/anneal_recompute.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <iterator>
#include <random>

#include "lissome/measure.h"
#include "lissome/train/remat/chain_schedule.h"

namespace lissome {
namespace {

// Energies are shares of the plain schedule's time. A node that exceeds the limit by the whole limit adds `weight`.
constexpr double kFirstWeight = 1, kLastWeight = 2;
constexpr double kFirstHeat = 0.02, kLastHeat = 0.0005;
constexpr int64_t kLeastShare = 256;  // values smaller than this fraction of the limit are always kept

constexpr size_t kMostStarts = 3;
// Fractions of the limit that chains are planned for. Chains for much less than the limit cost more, but annealing
// cannot mend a schedule in which many nodes exceed the limit.
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
    recomputed_ = find_recompute_set(model, start);
    RecomputeSchedule made = judge_.make(recomputed_);
    const ScheduleCost cost = judge_.judge(made);
    accept(std::move(made), cost);
  }

  FittedSchedule run() {
    const Stopwatch watch;
    for (int64_t visited = 0; visited < options_.visits && !candidates_.empty();) {
      if (watch.seconds() > options_.seconds) break;
      const double done = static_cast<double>(visited) / static_cast<double>(options_.visits);
      weight_ = options_.weight * kFirstWeight * std::pow(kLastWeight / kFirstWeight, done);
      const double heat = kFirstHeat * std::pow(kLastHeat / kFirstHeat, done);
      RecomputeSet before = recomputed_;
      change();
      RecomputeSchedule made = judge_.make(recomputed_);
      visited += static_cast<int64_t>(made.schedule.size());
      const ScheduleCost cost = judge_.judge(made);
      const double worse = energy(cost) - energy(cost_);
      if (worse <= 0 || draw() < std::exp(-worse / heat)) {
        accept(std::move(made), cost);
      } else {
        recomputed_ = std::move(before);
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

  void accept(RecomputeSchedule made, const ScheduleCost& cost) {
    cost_ = cost;
    list_candidates(made);
    FittedSchedule fitted{std::move(made.schedule), cost, cost.peak <= limit_};
    if (is_better_fit(fitted, best_)) best_ = std::move(fitted);
  }

  // Lists every entry that the schedule leaves room for.
  void list_candidates(const RecomputeSchedule& made) {
    candidates_.clear();
    for (size_t at = 0; at < made.schedule.size(); ++at) {
      const StepNode& node = model_.nodes[static_cast<size_t>(made.schedule[at])];
      for (const auto* values : {&node.reads, &node.results}) {
        for (const int value : *values) {
          const int owner = model_.owner[static_cast<size_t>(value)];
          if (owner >= 0 && may_recompute(owner) && judge_.is_read_next(owner, made.purpose[at]))
            candidates_.push_back({owner, made.purpose[at]});
        }
      }
    }
  }

  bool may_recompute(int owner) const {
    const int maker = model_.producer[static_cast<size_t>(owner)];
    return maker >= 0 && model_.nodes[static_cast<size_t>(maker)].repeatable &&
           model_.bytes[static_cast<size_t>(owner)] >= limit_ / kLeastShare;
  }

  void change() {
    const double kind = draw();
    if (kind < 0.35 || recomputed_.empty()) {
      const RecomputeEntry entry = pick(candidates_);
      if (recomputed_.erase(entry) == 0) recomputed_.insert(entry);
    } else if (kind < 0.7) {
      const RecomputeEntry entry = pick(candidates_);
      recomputed_.insert(entry);
      if (const std::set<int> sources = list_recomputed_sources(entry.first); !sources.empty()) keep(pick(sources));
    } else {
      recomputed_.erase(pick(recomputed_));
      if (kind < 0.85) recomputed_.insert(pick(candidates_));
    }
  }

  bool is_recomputed(int owner) const {
    const auto entry = recomputed_.lower_bound({owner, -1});
    return entry != recomputed_.end() && entry->first == owner;
  }
  void keep(int owner) {
    recomputed_.erase(recomputed_.lower_bound({owner, -1}), recomputed_.lower_bound({owner + 1, -1}));
  }

  // Values that recomputing this one may need and that are recomputed themselves.
  std::set<int> list_recomputed_sources(int value) const {
    std::set<int> found;
    std::vector<int> open = {value};
    while (!open.empty()) {
      const int maker = model_.producer[static_cast<size_t>(open.back())];
      open.pop_back();
      if (maker < 0) continue;
      for (const int read : model_.nodes[static_cast<size_t>(maker)].reads) {
        const int owner = model_.owner[static_cast<size_t>(read)];
        if (owner >= 0 && owner != value && is_recomputed(owner) && found.insert(owner).second) open.push_back(owner);
      }
    }
    return found;
  }

  const StepModel& model_;
  const RunOrder plain_;
  const int64_t limit_;
  const RecomputeJudge judge_;
  const AnnealingOptions options_;
  std::mt19937 random_;
  double plain_seconds_ = 0, weight_ = kFirstWeight;
  RecomputeSet recomputed_;
  ScheduleCost cost_;  // of recomputed_
  FittedSchedule best_;
  std::vector<RecomputeEntry> candidates_;
};

}  // namespace

FittedSchedule anneal_recompute(const StepModel& model, const RunOrder& schedule, int64_t limit,
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
        std::async(std::launch::async, anneal_recompute, std::cref(model), std::cref(starts[start]), limit, seeded));
  }
  for (size_t i = 0; i < running.size(); ++i) annealed[i].found = running[i].get();
  return annealed;
}

std::vector<RunOrder> list_annealing_starts(const StepModel& model, const RunOrder& schedule, int64_t limit,
                                            double seconds) {
  std::vector<RunOrder> starts = {schedule};
  const Stopwatch watch;
  for (const double share : kStartShares) {
    for (const RunOrder& base : fit_by_chain(model, static_cast<int64_t>(share * static_cast<double>(limit)))) {
      if (watch.seconds() > seconds) break;
      RunOrder found = fit_by_recompute(model, base, limit, {}, seconds - watch.seconds()).schedule;
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

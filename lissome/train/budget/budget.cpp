// See budget.h.
#include "lissome/train/budget/budget.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/index_select.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>

#include "lissome/train/budget/transfer_rate.h"
#include "lissome/train/remat/anneal_recompute.h"
#include "lissome/train/remat/annealing_limit.h"
#include "lissome/train/remat/chain_schedule.h"
#include "lissome/train/remat/greedy_recompute.h"
#include "lissome/train/remat/recompute.h"
#include "lissome/train/remat/stage_recompute.h"
#include "lissome/train/remat/store_in_file.h"
#include "lissome/train/remat/store_lossy.h"
#include "lissome/train/rewrite/keep_modules.h"
#include "lissome/train/rewrite/split_scores.h"

namespace lissome {
namespace {

// The step model counts memory a little differently from the planner, so limits are moved until the plan itself fits.
constexpr int kFittings = 6;
constexpr double kLeastMove = 0.8;  // smallest factor by which a limit moves at once
constexpr double kCloseEnough = 1.02;
constexpr int kSpillTries = 4;
constexpr int kTurns = 3;
constexpr double kWorthAnnealing = 1.1;  // times the seconds of the step that keeps everything
constexpr double kFarBelow = 0.75;       // of the bytes found: annealing does not reach below that
constexpr int kMostAnnealingsAtOnce = 4;
constexpr int kAnnealingRounds = 9;          // until a plan fits
constexpr int kAnnealingRoundsWhereFit = 4;  // after a plan fits
constexpr double kMoreWeight = 1.5;          // factor for bytes above the limit, after a round that ended above it
constexpr double kMostOver = 1.05;           // times the budget: larger plans say nothing about other schedules
constexpr int64_t kMostVisits = 25'000'000;  // nodes judged in one annealing, some seconds
constexpr int64_t kVisits = 1000;            // for each pair of nodes: annealing of few nodes ends soon
constexpr double kOutOfReach = 0.9;          // of the bytes reached: another limit does not help below that

std::vector<Sizes> list_sizes(const std::vector<at::Tensor>& tensors) {
  std::vector<Sizes> sizes;
  for (const at::Tensor& tensor : tensors) sizes.push_back(tensor.sizes().vec());
  return sizes;
}

// Repeats samples until there are enough, and appends the weights.
std::vector<at::Tensor> make_inputs(const std::vector<at::Tensor>& examples, const std::vector<Sizes>& sizes,
                                    const std::vector<at::Tensor>& weights) {
  std::vector<at::Tensor> inputs;
  for (size_t i = 0; i < examples.size(); ++i) {
    at::Tensor tensor = examples[i];
    for (int64_t k = 0; k < tensor.dim(); ++k) {
      const int64_t wanted = sizes[i][static_cast<size_t>(k)];
      if (tensor.size(k) != wanted) tensor = tensor.index_select(k, at::arange(wanted).remainder(tensor.size(k)));
    }
    inputs.push_back(tensor.contiguous());
  }
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  return inputs;
}

// False when the batch is down to the examples.
bool halve_batch(const Program& program, std::vector<Sizes>& sizes, const std::vector<at::Tensor>& examples) {
  bool halved = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const ValueType& type = program.value(program.inputs[i].value).type;
    if (type.sizes.empty() || type.sizes[0].constant()) continue;
    const int64_t least = examples[i].size(0);
    if (sizes[i][0] <= least) continue;
    sizes[i][0] = std::max(least, sizes[i][0] / 2);
    halved = true;
  }
  return halved;
}

// Inputs on which times are measured: the batch, halved until it fits the budget without recomputation.
std::vector<at::Tensor> choose_measured(const StepSource& source, const std::vector<at::Tensor>& examples,
                                        const std::vector<at::Tensor>& weights, const StepBudget& budget) {
  std::vector<Sizes> sizes = budget.sizes;
  std::vector<at::Tensor> inputs = examples;
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  while (budget.memory > 0 && halve_batch(*source.program, sizes, examples)) {
    std::vector<Sizes> all = sizes;
    const std::vector<Sizes> more = list_sizes(weights);
    all.insert(all.end(), more.begin(), more.end());
    const StepFacts facts = describe_step(source, inputs, all);
    const RunOrder plain = make_plain_schedule(facts.model);
    if (predict_memory(facts, plain, *source.plan, all, source.threads).total() <= budget.memory) break;
  }
  return make_inputs(examples, sizes, weights);
}

// The bytes as a value for --memory, rounded up.
std::string suggest_memory(int64_t bytes) {
  const int64_t mib = int64_t{1} << 20, kib = int64_t{1} << 10;
  if (bytes >= 64 * mib) return std::to_string((bytes + mib - 1) / mib) + "MiB";
  return std::to_string((bytes + kib - 1) / kib) + "KiB";
}

class BudgetPlanner {
 public:
  // `measured` are inputs, weights included, on which times are measured; `sizes` those of all inputs.
  BudgetPlanner(const StepSource& source, const std::vector<at::Tensor>& measured, std::vector<Sizes> sizes,
                const StepBudget& budget, const std::function<Plan(const Program&)>& lower)
      : source_(source),
        budget_(budget),
        lower_(lower),
        sizes_(std::move(sizes)),
        facts_(measure_step(source, measured, sizes_)) {
    plain_ = make_plain_schedule(facts_.model);
    forecast_.plain = predict_memory(facts_, plain_, *source_.plan, sizes_, source_.threads);
    for (const int value : facts_.model.leaving) {
      const int owner = facts_.model.owner[static_cast<size_t>(value)];
      if (owner >= 0) forecast_.leaving += facts_.model.bytes[static_cast<size_t>(owner)];
    }
    forecast_.plain_seconds = judge_schedule(facts_.model, plain_, INT64_MAX).seconds;
  }

  void search() {
    if (std::holds_alternative<KeepAll>(budget_.recompute)) {
      take("keep all", plain_);
    } else if (const auto* every = std::get_if<RecomputeEvery>(&budget_.recompute)) {
      take("every " + std::to_string(every->modules),
           make_recompute_schedule(facts_.model, plain_,
                                   recompute_inside_modules(*source_.program, facts_.model, every->modules))
               .schedule);
    } else if (const auto* modules = std::get_if<RecomputeModules>(&budget_.recompute)) {
      take("modules " + modules->pattern,
           make_recompute_schedule(facts_.model, plain_,
                                   recompute_modules(*source_.program, facts_.model, modules->pattern))
               .schedule);
    } else {
      fit(std::get<RecomputeToFit>(budget_.recompute).share);
    }
  }

  bool fits() const { return budget_.memory <= 0 || forecast_.chosen.total() <= budget_.memory; }
  const StepForecast& forecast() const { return forecast_; }

  // Corrects for a machine that was busier while this step was measured than while `other` was, by the nodes that both
  // steps have, so that their times can be compared.
  void follow_clock(const BudgetPlanner& other) {
    const double pace = compare_seconds(list_seconds(facts_.model), other, list_seconds(other.facts_.model));
    for (StepNode& node : facts_.model.nodes) node.seconds /= pace;
    forecast_.plain_seconds /= pace;
  }

  // Replaces times that were scaled from few samples by the measured time of the chosen plan on all samples. The step
  // of `whole` that keeps everything may not fit, so its time is corrected by the nodes that both steps have. If it has
  // other nodes too, it is timed again on the samples `measured`, in turns with the plan, so that the machine is
  // equally busy for both; neither is in memory during the other's turn. The turn with the median ratio counts.
  void time_chosen(const BudgetPlanner& whole, const std::vector<at::Tensor>& measured,
                   const std::vector<at::Tensor>& inputs) {
    const bool alone = &whole == this;
    if (!fits() || (alone && schedule_ == plain_ && forecast_.offloaded == 0)) return;
    if (forecast_.stored_lossy > 0) return;  // conversions to bf16 and back belong to no node
    const Program program = apply_schedule(*source_.program, schedule_);
    const StepSource chosen{&program, &plan_, source_.threads, budget_.offload_folder};
    struct Turn {
      double seconds, plain_seconds;
    };
    std::vector<Turn> turns;
    for (int i = 0; i < (alone ? 1 : kTurns); ++i) {
      const std::vector<double> few = alone ? list_seconds(facts_.model) : whole.remeasure(measured);
      const NodeSeconds all = measure_nodes(chosen, inputs);
      turns.push_back(
          {std::accumulate(all.nodes.begin(), all.nodes.end(), all.moving),
           std::accumulate(few.begin(), few.end(), 0.0) * compare_seconds(list_first_runs(all.nodes), whole, few)});
    }
    const auto middle = turns.begin() + std::ssize(turns) / 2;
    std::nth_element(turns.begin(), middle, turns.end(), [](const Turn& left, const Turn& right) {
      return left.seconds * right.plain_seconds < right.seconds * left.plain_seconds;
    });
    forecast_.seconds = middle->seconds;
    forecast_.plain_seconds = middle->plain_seconds;
  }

  // Makes this a forecast against the step that keeps everything and does not split scores.
  void compare_with(const StepForecast& whole) {
    forecast_.plain = whole.plain;
    forecast_.leaving = whole.leaving;
    forecast_.plain_seconds = whole.plain_seconds;
    forecast_.method = "scores in blocks, " + forecast_.method;
  }

  // Throws over_budget where nothing fits.
  BudgetedPlan finish() {
    if (!fits()) refuse();
    forecast_.modules = describe_modules(*source_.program, facts_.model, schedule_);
    return {std::move(plan_), std::move(forecast_)};
  }

 private:
  // Measures the seconds of the nodes as at first.
  std::vector<double> remeasure(const std::vector<at::Tensor>& measured) const {
    std::vector<double> seconds = measure_nodes(source_, measured).nodes;
    for (size_t i = 0; i < seconds.size(); ++i) seconds[i] *= facts_.scales[i];
    return seconds;
  }

  static std::vector<double> list_seconds(const StepModel& model) {
    std::vector<double> seconds;
    for (const StepNode& node : model.nodes) seconds.push_back(node.seconds);
    return seconds;
  }

  // `seconds` by position of the schedule -> by node: the seconds of its first run.
  std::vector<double> list_first_runs(const std::vector<double>& seconds) const {
    std::vector<double> first(facts_.model.nodes.size(), 0);
    std::vector<bool> ran(first.size(), false);
    for (size_t i = 0; i < schedule_.size(); ++i) {
      const auto node = static_cast<size_t>(schedule_[i]);
      if (!ran[node]) first[node] = seconds[i];
      ran[node] = true;
    }
    return first;
  }

  // The time of the nodes that both steps have: here, by `seconds`, over that in `other`, by `others`.
  double compare_seconds(const std::vector<double>& seconds, const BudgetPlanner& other,
                         const std::vector<double>& others) const {
    const auto name = [](const BudgetPlanner& planner, const Node& node) {
      return node.results.empty() ? "" : node.op.name() + planner.source_.program->value(node.results.front()).name;
    };
    std::map<std::string, double> known;
    for (size_t i = 0; i < others.size(); ++i) known[name(other, other.source_.program->nodes[i])] = others[i];
    double here = 0, there = 0;
    for (size_t i = 0; i < seconds.size(); ++i) {
      const auto found = known.find(name(*this, source_.program->nodes[i]));
      if (found != known.end()) here += seconds[i], there += found->second;
    }
    return here > 0 && there > 0 ? here / there : 1;
  }

  // Applies the schedule to the step, lowers it and keeps it if it is the best so far. Returns the predicted memory.
  StepMemory take(const std::string& method, const RunOrder& schedule) {
    const std::string wrong = check_schedule(facts_.model, schedule);
    LISSOME_CHECK(wrong.empty(), method, ": ", wrong);
    const bool is_plain = schedule == plain_;
    Plan plan = is_plain ? *source_.plan : lower_(apply_schedule(*source_.program, schedule));
    const StepMemory memory = predict_memory(facts_, schedule, plan, sizes_, source_.threads);
    const double seconds = judge_schedule(facts_.model, schedule, INT64_MAX).seconds;
    Candidate exact{std::move(plan), memory, seconds, method, {}, {}};
    // Spills take time: with them the plan can only be better if the schedule alone is faster.
    const bool hopeless = !schedule_.empty() && fits() && seconds >= forecast_.seconds;
    if (budget_.memory > 0 && memory.total() > budget_.memory && !hopeless) {
      if (budget_.lossy) try_bf16(exact, schedule);
      if (!budget_.offload_folder.empty()) try_file(exact, schedule);
    }
    keep_better(std::move(exact), schedule);
    return memory;
  }

  struct Candidate {
    Plan plan;
    StepMemory memory;
    double seconds;
    std::string method;
    Spills lossy, offloaded;
  };

  void try_bf16(Candidate candidate, const RunOrder& schedule) {
    const int64_t wanted = budget_.memory - candidate.memory.held;
    candidate.lossy = store_in_bf16(candidate.plan, sizes_, source_.threads, wanted);
    if (candidate.lossy.values == 0) return;
    // Each conversion, to bf16 and back, moves 6 bytes for 4 bytes of f32.
    candidate.seconds += 3 * static_cast<double>(candidate.lossy.bytes) / copy_rate();
    candidate.method += ", bf16 activations";
    candidate.memory = predict_memory(facts_, schedule, candidate.plan, sizes_, source_.threads);
    keep_better(std::move(candidate), schedule);
  }

  void try_file(Candidate candidate, const RunOrder& schedule) {
    const int64_t wanted = budget_.memory - candidate.memory.held;
    candidate.offloaded = store_in_file(candidate.plan, sizes_, source_.threads, wanted);
    if (candidate.offloaded.values == 0) return;
    candidate.seconds = folder_rates().predict(candidate.seconds, 2 * candidate.offloaded.bytes);
    candidate.method += ", offloaded activations";
    candidate.memory = predict_memory(facts_, schedule, candidate.plan, sizes_, source_.threads);
    keep_better(std::move(candidate), schedule);
  }

  void keep_better(Candidate candidate, const RunOrder& schedule) {
    if (!schedule_.empty() && !is_better(candidate.memory, candidate.seconds)) return;
    plan_ = std::move(candidate.plan);
    schedule_ = schedule;
    forecast_.chosen = candidate.memory;
    forecast_.seconds = candidate.seconds;
    forecast_.recomputed_nodes = static_cast<int>(schedule.size() - facts_.model.nodes.size());
    forecast_.stored_lossy = candidate.lossy.values;
    forecast_.offloaded = candidate.offloaded.values;
    forecast_.offloaded_bytes = candidate.offloaded.bytes;
    forecast_.method = candidate.method;
  }

  double copy_rate() {
    if (copy_rate_ == 0) copy_rate_ = measure_copy_rate();
    return copy_rate_;
  }
  const FolderRates& folder_rates() {
    if (folder_rates_.cache == 0) folder_rates_ = measure_folder(budget_.offload_folder);
    return folder_rates_;
  }

  // A plan that fits is better than one that does not. Of two that fit, the faster is better; else the smaller.
  bool is_better(const StepMemory& memory, double seconds) const {
    const bool fits = memory.total() <= budget_.memory, fitted = forecast_.chosen.total() <= budget_.memory;
    if (fits != fitted) return fits;
    return fits ? seconds < forecast_.seconds : memory.total() < forecast_.chosen.total();
  }

  void fit(double share) {
    const auto wanted = static_cast<int64_t>(static_cast<double>(budget_.memory) * share);
    if (take("keep all", plain_).total() <= wanted || budget_.memory <= 0) return;
    const bool spills = budget_.lossy || !budget_.offload_folder.empty();
    if (!spills) schedule_.clear();
    const auto plain = static_cast<double>(judge_schedule(facts_.model, plain_, INT64_MAX).peak);
    const double reached = fit_exactly(wanted, plain);
    if (!spills) anneal(wanted);
    // Spills make room, so schedules that keep more are tried with them.
    for (int i = 1; spills && i <= kSpillTries; ++i)
      take(method_, find_schedule(reached * std::pow(plain / reached, i / (kSpillTries + 1.0))).schedule);
  }

  // Returns the last limit that was tried. `plain`: the peak of the step that keeps everything.
  double fit_exactly(int64_t wanted, double plain) {
    // The judge counts memory differently from the plan, so its limit moves between limits that fitted and that did
    // not.
    double limit = plain * static_cast<double>(wanted) / static_cast<double>(forecast_.plain.total());
    double tried = limit;
    double fits = 0, too_much = INFINITY;
    for (int i = 0; i < kFittings; ++i) {
      const FittedSchedule fitted = find_schedule(tried = limit);
      const StepMemory memory = take(method_, fitted.schedule);
      const double room = static_cast<double>(wanted) / static_cast<double>(memory.total());
      if (room >= 1) fits = limit;
      // Any limit down to the peak that the search reached would give the same schedule.
      if (room < 1 && fitted.fits) too_much = limit = std::min(limit, static_cast<double>(fitted.cost.peak));
      if (room >= 1 && room < kCloseEnough) break;
      // If the search found nothing so small, it may with a slightly larger limit, whose plan may be smaller than
      // counted.
      const bool nothing = !fitted.fits && room < 1;
      if (nothing && room < kOutOfReach) break;
      const double moved = limit * (nothing ? kCloseEnough : std::clamp(room, kLeastMove, 1 / kLeastMove));
      limit = moved > fits && moved < too_much ? moved : (fits + std::min(too_much, 2 * limit)) / 2;
    }
    return tried;
  }

  // Runs rounds of parallel annealings if the schedule of the quick searches does not fit or costs much time.
  void anneal(int64_t wanted) {
    const bool fits = forecast_.chosen.total() <= wanted;
    if (fits && forecast_.seconds < kWorthAnnealing * forecast_.plain_seconds) return;
    if (static_cast<double>(wanted) < kFarBelow * static_cast<double>(forecast_.chosen.total())) return;
    AnnealingLimit limit(wanted);
    limit.note(judge_schedule(facts_.model, plain_, INT64_MAX).peak, forecast_.plain.total());
    limit.note(judge_schedule(facts_.model, schedule_, INT64_MAX).peak, forecast_.chosen.total());
    std::vector<RunOrder> starts = list_annealing_starts(facts_.model, schedule_, limit.most());
    const auto nodes = static_cast<int64_t>(facts_.model.nodes.size());
    AnnealingOptions options{.visits = std::min(kMostVisits, kVisits * nodes * nodes)};
    const int at_once = std::clamp(source_.threads, 1, kMostAnnealingsAtOnce);
    bool fitted = false;
    for (int left = kAnnealingRounds, round = 0; left > 0; --left, ++round) {
      const int64_t bytes = round % 2 == 0 ? limit.most() : limit.careful();
      std::vector<Annealed> annealed = anneal_at_once(facts_.model, starts, bytes, options, at_once);
      options.seed += static_cast<uint32_t>(at_once);
      bool reached = false;
      for (Annealed& one : annealed) {
        reached = reached || one.found.fits;
        if (one.found.fits) fitted = take_annealed(one.found, limit, wanted) || fitted;
        starts[one.start] = std::move(one.found.schedule);  // the next round begins where this one ended
      }
      // Bytes weigh more from now on: the limit may need costly recomputations.
      if (!reached) options.weight *= kMoreWeight;
      if (!fitted) continue;
      left = std::min(left, kAnnealingRoundsWhereFit);
      if (left == 2) starts = {schedule_};  // the last round continues from the best schedule
    }
  }

  // Returns whether the plan fits.
  bool take_annealed(const FittedSchedule& found, AnnealingLimit& limit, int64_t wanted) {
    const int64_t planned = take("annealed recompute", remove_unread_runs(facts_.model, found.schedule)).total();
    if (static_cast<double>(planned) <= kMostOver * static_cast<double>(wanted)) limit.note(found.cost.peak, planned);
    return planned <= wanted;
  }

  // The fastest schedule that fits, of greedy searches from the plain schedule, from chains of stages, and from
  // everything inside stages recomputed.
  FittedSchedule find_schedule(double most) {
    const auto limit = std::max<int64_t>(static_cast<int64_t>(most), 1);
    method_ = "recompute";
    FittedSchedule best = fit_by_recompute(facts_.model, plain_, limit);
    const auto take_better = [&](FittedSchedule fitted, const char* method) {
      if (!is_better_fit(fitted, best)) return;
      best = std::move(fitted);
      method_ = method;
    };
    for (const RunOrder& base : fit_by_chain(facts_.model, limit))
      take_better(fit_by_recompute(facts_.model, base, limit), "chain and recompute");
    const StepModel steady = forbid_large_runs(facts_.model, limit);
    for (const RecomputeSet& recomputed : list_stage_recompute(steady))
      take_better(fit_by_recompute(steady, plain_, limit, recomputed), "stages and recompute");
    best.schedule = remove_unread_runs(facts_.model, best.schedule);
    return best;
  }

  [[noreturn]] void refuse() const {
    throw_error(ErrorKind::over_budget, "a training step at these sizes takes ", format_bytes(forecast_.plain.total()),
                " for activations and scratch, ", format_bytes(forecast_.chosen.total()),
                " at the least found by recomputing", budget_.offload_folder.empty() ? "" : " and offloading",
                "; the budget leaves ", format_bytes(budget_.memory), " for them.\n      Give --memory ",
                suggest_memory(budget_.beside + forecast_.chosen.total()), " or a smaller --batch.");
  }

  const StepSource source_;
  const StepBudget& budget_;
  const std::function<Plan(const Program&)>& lower_;
  std::vector<Sizes> sizes_;  // of all inputs, weights included
  StepFacts facts_;
  RunOrder plain_, schedule_;
  StepForecast forecast_;
  std::string method_;
  double copy_rate_ = 0;      // bytes a second; 0: not measured yet
  FolderRates folder_rates_;  // cache 0: not measured yet
  Plan plan_;
};

// Plans the step with the scores of a classifier in blocks. Returns a plan if only this fits, or if it is faster than
// `whole`, which recomputes until the step fits.
std::optional<BudgetedPlan> plan_in_blocks(const BudgetPlanner& whole, const StepSource& source,
                                           const std::vector<at::Tensor>& measured,
                                           const std::vector<at::Tensor>& inputs, const std::vector<Sizes>& sizes,
                                           const StepBudget& budget, const std::function<Plan(const Program&)>& lower) {
  Program program = *source.program;
  if (!budget.split_scores) return std::nullopt;
  if (split_scores(program, *source.plan, bind_sizes(program, sizes)) == 0) return std::nullopt;
  const Plan plan = lower(program);
  BudgetPlanner blocks({&program, &plan, source.threads}, measured, sizes, budget, lower);
  blocks.follow_clock(whole);
  const StepForecast &in_blocks = blocks.forecast(), &wanted = whole.forecast();
  if (whole.fits() && wanted.seconds <= in_blocks.plain_seconds) return std::nullopt;
  blocks.search();
  const bool better = whole.fits() ? blocks.fits() && in_blocks.seconds < wanted.seconds
                                   : in_blocks.chosen.total() < wanted.chosen.total();
  if (!better) return std::nullopt;
  blocks.compare_with(wanted);
  blocks.time_chosen(whole, measured, inputs);
  return blocks.finish();
}

}  // namespace

Recompute parse_recompute(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string word = text.substr(0, colon), rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (text == "none") return KeepAll{};
  if (text == "auto") return RecomputeToFit{};
  if (word == "modules" && !rest.empty()) return RecomputeModules{rest};
  if (word == "every") {
    int modules = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), modules);
    if (error == std::errc() && end == rest.data() + rest.size() && modules > 0) return RecomputeEvery{modules};
  }
  if (word == "adaptive") {
    double share = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), share);
    if (error == std::errc() && end == rest.data() + rest.size() && share > 0 && share <= 1)
      return RecomputeToFit{share};
  }
  throw_error(ErrorKind::usage,
              "--recompute must be none, auto, every:N, modules:PATTERN or adaptive:SHARE (0 to 1), not ", quote(text));
}

BudgetedPlan plan_within_budget(const StepSource& source, const std::vector<at::Tensor>& examples,
                                const std::vector<at::Tensor>& weights, const StepBudget& budget,
                                const std::function<Plan(const Program&)>& lower) {
  std::vector<Sizes> sizes = budget.sizes;
  const std::vector<Sizes> more = list_sizes(weights);
  sizes.insert(sizes.end(), more.begin(), more.end());
  const std::vector<at::Tensor> measured = choose_measured(source, examples, weights, budget);
  BudgetPlanner whole(source, measured, sizes, budget, lower);
  whole.search();
  const std::vector<at::Tensor> inputs = make_inputs(examples, budget.sizes, weights);
  const bool keeps_all = whole.fits() && whole.forecast().recomputed_nodes == 0 && whole.forecast().offloaded == 0;
  if (!keeps_all && std::holds_alternative<RecomputeToFit>(budget.recompute)) {
    std::optional<BudgetedPlan> blocks = plan_in_blocks(whole, source, measured, inputs, sizes, budget, lower);
    if (blocks) return std::move(*blocks);
  }
  whole.time_chosen(whole, measured, inputs);
  return whole.finish();
}

}  // namespace lissome

// See step_times.h.
#include "lissome/train/budget/search/step_times.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "lissome/train/budget/facts/node_meter.h"
#include "lissome/train/remat/recompute.h"

namespace lissome {
namespace {

constexpr int kTurns = 3;

// The value by which a node is known; none for nodes without one.
ValueId find_first_result(const Node& node) { return node.results.empty() ? ValueId::none : node.results.front(); }

std::vector<double> list_model_seconds(const StepModel& model) {
  std::vector<double> seconds;
  for (const StepNode& node : model.nodes) seconds.push_back(node.seconds);
  return seconds;
}

// Measures the seconds of the nodes as at first.
std::vector<double> measure_again(const PlanningTask& task, const std::vector<at::Tensor>& measured) {
  std::vector<double> seconds = measure_nodes(task.source, measured).seconds;
  for (size_t i = 0; i < seconds.size(); ++i) seconds[i] *= task.facts.scales[i];
  return seconds;
}

StepSeconds choose_middle(std::vector<StepSeconds> turns) {
  const auto middle = turns.begin() + std::ssize(turns) / 2;
  std::nth_element(turns.begin(), middle, turns.end(), [](const StepSeconds& left, const StepSeconds& right) {
    return left.seconds * right.plain_seconds < right.seconds * left.plain_seconds;
  });
  return *middle;
}

}  // namespace

std::vector<double> list_first_runs(const RunOrder& schedule, const std::vector<double>& seconds, size_t nodes) {
  std::vector<double> first(nodes, 0);
  std::vector<bool> ran(nodes, false);
  for (size_t i = 0; i < schedule.size(); ++i) {
    const auto node = static_cast<size_t>(schedule[i]);
    if (!ran[node]) first[node] = seconds[i];
    ran[node] = true;
  }
  return first;
}

double compare_shared_nodes(const Program& one, const std::vector<double>& seconds, const Program& other,
                            const std::vector<double>& others) {
  std::unordered_map<ValueId, size_t> known;
  for (size_t i = 0; i < others.size(); ++i) known[find_first_result(other.nodes[i])] = i;
  known.erase(ValueId::none);
  double here = 0, there = 0;
  for (size_t i = 0; i < seconds.size(); ++i) {
    const auto found = known.find(find_first_result(one.nodes[i]));
    // A rewrite may compute the same value by another op.
    if (found == known.end() || !one.nodes[i].is(other.nodes[found->second].op.name())) continue;
    here += seconds[i];
    there += others[found->second];
  }
  return here > 0 && there > 0 ? here / there : 1;
}

void follow_clock(PlanningTask& task, const PlanningTask& other) {
  const double pace = compare_shared_nodes(*task.source.program, list_model_seconds(task.facts.model),
                                           *other.source.program, list_model_seconds(other.facts.model));
  for (StepNode& node : task.facts.model.nodes) node.seconds /= pace;
  task.plain_seconds /= pace;
}

std::optional<StepSeconds> time_chosen(const PlanningTask& task, const PlannedStep& chosen, const PlanningTask& whole,
                                       const std::vector<at::Tensor>& measured, const std::vector<at::Tensor>& inputs) {
  const bool alone = &whole == &task;
  const bool keeps_all = alone && chosen.schedule == task.plain && chosen.offloaded.values == 0;
  if (!fits_budget(chosen, task.budget.memory) || keeps_all || chosen.lossy.values > 0) return std::nullopt;
  const Program program = apply_schedule(*task.source.program, chosen.schedule);
  const StepSource source{&program, &chosen.plan, task.source.threads, task.budget.offload_folder};
  std::vector<StepSeconds> turns;
  for (int i = 0; i < (alone ? 1 : kTurns); ++i) {
    const std::vector<double> few = alone ? list_model_seconds(task.facts.model) : measure_again(whole, measured);
    const NodeCosts all = measure_nodes(source, inputs);
    const std::vector<double> first = list_first_runs(chosen.schedule, all.seconds, task.facts.model.nodes.size());
    const double pace = compare_shared_nodes(*task.source.program, first, *whole.source.program, few);
    turns.push_back({std::accumulate(all.seconds.begin(), all.seconds.end(), all.moving),
                     std::accumulate(few.begin(), few.end(), 0.0) * pace});
  }
  return choose_middle(std::move(turns));
}

}  // namespace lissome

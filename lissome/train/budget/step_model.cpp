// See step_model.h.
#include "lissome/train/budget/step_model.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace lissome {
namespace {

// The life of one run of a value that owns memory: from where it is computed to its last reader.
struct Life {
  int value = 0;
  int first = 0, last = 0;
};

// `leaving`: the schedule is complete, so that outputs stay to its end.
std::vector<Life> find_lives(const StepModel& model, const RunOrder& schedule, bool leaving) {
  std::vector<Life> lives;
  std::vector<int> current(model.owner.size(), -1);  // by value: the life of its latest run
  const auto touch = [&](int value, int position) {
    const int life = current[static_cast<size_t>(value)];
    if (life >= 0) lives[static_cast<size_t>(life)].last = position;
  };
  for (size_t at = 0; at < schedule.size(); ++at) {
    const int position = static_cast<int>(at);
    const StepNode& node = model.nodes[static_cast<size_t>(schedule[at])];
    for (const int value : node.reads) touch(value, position);
    for (const int value : node.results) {
      const auto id = static_cast<size_t>(value);
      const int owner = model.owner[id];
      if (owner == value) {
        current[id] = static_cast<int>(lives.size());
        lives.push_back({value, position, position});
      } else {
        current[id] = owner < 0 ? -1 : current[static_cast<size_t>(owner)];
      }
    }
  }
  for (const int value : model.leaving) {
    if (leaving) touch(value, static_cast<int>(schedule.size()));
  }
  return lives;
}

std::vector<const Life*> sort_by_end(const std::vector<Life>& lives) {
  std::vector<const Life*> sorted;
  for (const Life& life : lives) sorted.push_back(&life);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Life* a, const Life* b) { return a->last < b->last; });
  return sorted;
}

// Whether a value takes over memory that becomes free at its first position. `ends`: by owner, where its memory was
// freed last.
bool takes_over(const StepModel& model, const RunOrder& schedule, const Life& life, const std::vector<int>& ends) {
  const StepNode& node = model.nodes[static_cast<size_t>(schedule[static_cast<size_t>(life.first)])];
  return life.last > life.first && std::any_of(node.in_place.begin(), node.in_place.end(), [&](int value) {
           const auto owner = static_cast<size_t>(model.owner[static_cast<size_t>(value)]);
           return ends[owner] == life.first && model.bytes[owner] == model.bytes[static_cast<size_t>(life.value)];
         });
}

bool is_repeatable(const StepModel& model, int value) {
  return model.nodes[static_cast<size_t>(model.producer[static_cast<size_t>(value)])].repeatable;
}

// Bytes that a node needs while it runs, beside the results of unrepeatable nodes.
int64_t count_repeatable_bytes(const StepModel& model, const StepNode& node) {
  std::set<int> touched;
  int64_t bytes = node.scratch;
  for (const auto* values : {&node.reads, &node.results}) {
    for (const int value : *values) {
      const int owner = model.owner[static_cast<size_t>(value)];
      if (owner < 0 || !touched.insert(owner).second) continue;
      if (is_repeatable(model, owner)) bytes += model.bytes[static_cast<size_t>(owner)];
    }
  }
  int64_t taken_over = 0;  // by the only result, which has the size of what it takes over
  for (const int value : node.in_place)
    taken_over = std::max(taken_over, model.bytes[static_cast<size_t>(model.owner[static_cast<size_t>(value)])]);
  return bytes - taken_over;
}

}  // namespace

RunOrder make_plain_schedule(const StepModel& model) {
  RunOrder schedule(model.nodes.size());
  std::iota(schedule.begin(), schedule.end(), 0);
  return schedule;
}

ScheduleCost judge_schedule(const StepModel& model, const RunOrder& schedule, int64_t limit,
                            std::vector<int64_t>* live) {
  std::vector<int64_t> change(schedule.size() + 2, 0);
  const std::vector<Life> lives = find_lives(model, schedule, true);
  // By owner: the position at which its memory was freed, for results that take it over.
  std::vector<int> ends(model.owner.size(), -1);
  size_t ended = 0;
  std::vector<const Life*> by_end = sort_by_end(lives);
  for (const Life& life : lives) {
    for (; ended < by_end.size() && by_end[ended]->last <= life.first; ++ended)
      ends[static_cast<size_t>(by_end[ended]->value)] = by_end[ended]->last;
    const int64_t bytes = model.bytes[static_cast<size_t>(life.value)];
    const bool taken_over = takes_over(model, schedule, life, ends);
    change[static_cast<size_t>(life.first) + (taken_over ? 1 : 0)] += bytes;
    change[static_cast<size_t>(life.last) + 1] -= bytes;
  }
  ScheduleCost cost;
  int64_t now = 0;
  if (live != nullptr) live->clear();
  for (size_t at = 0; at < schedule.size(); ++at) {
    const StepNode& node = model.nodes[static_cast<size_t>(schedule[at])];
    now += change[at];
    const int64_t bytes = now + node.scratch;
    if (bytes > cost.peak) cost.peak = bytes, cost.peak_position = static_cast<int>(at);
    if (bytes > limit) cost.excess += static_cast<double>(bytes - limit);
    cost.seconds += node.seconds;
    if (live != nullptr) live->push_back(bytes);
  }
  return cost;
}

int64_t find_least_peak(const StepModel& model) {
  const RunOrder plain = make_plain_schedule(model);
  // By position: bytes that change what must be kept there.
  std::vector<int64_t> change(plain.size() + 2, 0);
  for (const Life& life : find_lives(model, plain, true)) {
    if (is_repeatable(model, life.value)) continue;
    change[static_cast<size_t>(life.first)] += model.bytes[static_cast<size_t>(life.value)];
    change[static_cast<size_t>(life.last) + 1] -= model.bytes[static_cast<size_t>(life.value)];
  }
  int64_t peak = 0, kept = 0;
  for (size_t at = 0; at < plain.size(); ++at) {
    kept += change[at];
    peak = std::max(peak, kept + count_repeatable_bytes(model, model.nodes[at]));
  }
  return peak;
}

std::vector<IdleValue> list_idle_values(const StepModel& model, const RunOrder& schedule, int position) {
  // The last touch of each life in the schedule up to here.
  const RunOrder before(schedule.begin(), schedule.begin() + position + 1);
  std::vector<int> touched(model.owner.size(), -1);
  for (const Life& life : find_lives(model, before, false)) touched[static_cast<size_t>(life.value)] = life.last;
  std::vector<IdleValue> idle;
  for (const Life& life : find_lives(model, schedule, true)) {
    if (life.first >= position || life.last <= position) continue;
    const int last = touched[static_cast<size_t>(life.value)];
    if (last < position) idle.push_back({life.value, last});
  }
  return idle;
}

std::string check_schedule(const StepModel& model, const RunOrder& schedule) {
  std::vector<int> runs(model.nodes.size(), 0);
  for (size_t at = 0; at < schedule.size(); ++at) {
    const int position = schedule[at];
    if (position < 0 || static_cast<size_t>(position) >= runs.size()) return "there is no such node";
    const StepNode& node = model.nodes[static_cast<size_t>(position)];
    const std::string here = "node " + std::to_string(position) + " at " + std::to_string(at);
    const auto is_missing = [&](int value) {
      const int producer = model.producer[static_cast<size_t>(value)];
      return producer >= 0 && runs[static_cast<size_t>(producer)] == 0;
    };
    if (std::any_of(node.reads.begin(), node.reads.end(), is_missing))
      return here + " reads a value that is not computed yet";
    if (std::any_of(node.names.begin(), node.names.end(), is_missing))
      return here + " names a value that is not computed yet";
    if (++runs[static_cast<size_t>(position)] > 1 && !node.repeatable) return here + " may not run again";
  }
  const auto missing = std::find(runs.begin(), runs.end(), 0);
  if (missing == runs.end()) return {};
  return "node " + std::to_string(missing - runs.begin()) + " never runs";
}

}  // namespace lissome

// What the search for a training schedule knows of a step: who reads what, what each node takes, and the memory that
// each value owns. Plain numbers, without tensors and names, so that schedules can be judged by the thousand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lissome {

struct StepNode {
  double seconds = 0;
  int64_t scratch = 0;     // bytes that only its own run needs
  bool repeatable = true;  // gives the same values when it runs again: pure, and draws no random numbers
  bool forward = false;    // the outputs or the state need it, not the gradients alone
  std::vector<int> reads;  // values, each once; only of those that other nodes make
  std::vector<int> names;  // values that are arguments but whose memory its run does not read, such as for their sizes
  std::vector<int> results;  // values
  // Values in whose memory the only result that owns some may lie where this is their last reader; of its size.
  std::vector<int> in_place;
};

struct StepModel {
  static constexpr int kNowhere = -1;

  std::vector<StepNode> nodes;  // in the order of the program
  std::vector<int> producer;    // by value: the node that makes it; -1 for inputs and weights
  std::vector<int64_t> bytes;   // by value: of memory that it owns; 0 for views
  // By value: the value in whose memory it lies, itself where it owns some; kNowhere for what takes no memory of the
  // step: numbers, inputs, weights and their views.
  std::vector<int> owner;
  std::vector<int> leaving;  // values that the outputs name, but for those that leave early
};

// Nodes in the order in which they run; a node that runs again stands there again. Each reader means the latest run of
// what it reads, so what ran again frees what was made before.
using RunOrder = std::vector<int>;

struct ScheduleCost {
  int64_t peak = 0;       // most bytes alive at once, scratch included
  int peak_position = 0;  // where in the schedule
  double seconds = 0;
  double excess = 0;  // bytes above the limit, summed over the positions of the schedule
};

RunOrder make_plain_schedule(const StepModel& model);
// Everything alive is counted once; a value lives from its run to its last reader. `live`, when not null, receives the
// bytes alive at each position, scratch included.
ScheduleCost judge_schedule(const StepModel& model, const RunOrder& schedule, int64_t limit,
                            std::vector<int64_t>* live = nullptr);
// Memory that waits at `position` of the schedule: alive, read later, neither made nor read there.
struct IdleValue {
  int value = 0;    // that owns the memory
  int touched = 0;  // the position before where it was made or read last
};
std::vector<IdleValue> list_idle_values(const StepModel& model, const RunOrder& schedule, int position);
// Empty when every node runs, unrepeatable ones once, and nothing is read before it was made; else what is wrong.
std::string check_schedule(const StepModel& model, const RunOrder& schedule);

}  // namespace lissome

// The model of a step for the search for a schedule: the values that each node reads, the time of each node, and the
// memory that each value owns. Plain numbers, without tensors and names, so that thousands of schedules can be judged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lissome {

struct StepNode {
  double seconds = 0;
  int64_t scratch = 0;       // bytes that the node needs only while it runs
  bool repeatable = true;    // a second run gives the same values: the node is pure and draws no random numbers
  bool forward = false;      // outputs or state need it, not only gradients
  std::vector<int> reads;    // values of other nodes, each once
  std::vector<int> names;    // arguments whose memory the run does not read, for example for their sizes
  std::vector<int> results;  // values
  // Values of the same size whose memory the only owning result may take over, if this node is their last reader.
  std::vector<int> in_place;
};

struct StepModel {
  static constexpr int kNowhere = -1;

  std::vector<StepNode> nodes;  // in the order of the program
  std::vector<int> producer;    // by value: the node that computes it; -1 for inputs and weights
  std::vector<int64_t> bytes;   // by value: of memory that it owns; 0 for views
  // By value: the value in whose memory it lies, the value itself if it owns memory, kNowhere if it takes no memory of
  // the step (numbers, inputs, weights and their views).
  std::vector<int> owner;
  std::vector<int> leaving;  // values of outputs, except those that leave early
};

// Nodes in the order in which they run; a recomputed node is listed once for each run. Each reader takes the latest run
// before it, so a repeated run frees the result of the run before.
using RunOrder = std::vector<int>;

struct ScheduleCost {
  int64_t peak = 0;       // most bytes alive at once, scratch included
  int peak_position = 0;  // position of the peak in the schedule
  double seconds = 0;
  double excess = 0;  // bytes above the limit, summed over the positions of the schedule
};

RunOrder make_plain_schedule(const StepModel& model);
// Counts everything alive once; a value lives from its run to its last reader. `live`, when not null, receives the
// bytes alive at each position, scratch included.
ScheduleCost judge_schedule(const StepModel& model, const RunOrder& schedule, int64_t limit,
                            std::vector<int64_t>* live = nullptr);
// A lower bound of the peaks of all schedules whose first runs have the order of the program: what a node touches,
// beside results of unrepeatable nodes that are read later.
int64_t find_least_peak(const StepModel& model);
// A value that is idle at `position` of the schedule: alive and read later, but neither computed nor read there.
struct IdleValue {
  int value = 0;    // the value that owns the memory
  int touched = 0;  // the last position before at which it was computed or read
};
std::vector<IdleValue> list_idle_values(const StepModel& model, const RunOrder& schedule, int position);
// Empty if every node runs, unrepeatable nodes run once, and every value is computed before it is read; else the error.
std::string check_schedule(const StepModel& model, const RunOrder& schedule);

}  // namespace lissome

// Schedules by what is given up: memory is freed after a node has touched it, and made again where it is read next.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "lissome/train/budget/step_model.h"

namespace lissome {

// Owning value and the position of the schedule at hand after which it goes. Who reads it next has it made again, with
// what that takes; from there it stays until its last reader, unless a drop after that position ends it again.
using Drops = std::set<std::pair<int, int>>;

struct DropSchedule {
  RunOrder schedule;
  std::vector<int> purpose;  // by position: that of the schedule at hand for whose sake it runs, itself among them
};

// What unrepeatable nodes made stays where making something again needs it.
DropSchedule make_drop_schedule(const StepModel& model, const RunOrder& base, const Drops& drops);

// The drops of the plain schedule that make something like this one, but with nothing made before it is read.
Drops find_drops(const StepModel& model, const RunOrder& schedule);

// The same base with many different drops. The model outlives it.
class DropJudge {
 public:
  DropJudge(const StepModel& model, const RunOrder& base, int64_t limit);

  DropSchedule make(const Drops& drops) const;
  // Bytes above the limit count once for each node of the base: that something is made again is no fault in itself.
  ScheduleCost judge(const DropSchedule& made) const;
  // Whether the value is read after this position of the base before it is made anew.
  bool is_read_next(int owner, int position) const;

 private:
  struct Touch {
    int position = 0;    // of the base
    bool reads = false;  // else it is made there
  };
  const StepModel& model_;
  const RunOrder base_;
  const int64_t limit_;
  std::vector<std::vector<Touch>> touches_;  // by owner, in order
};

}  // namespace lissome

// Schedules that free values early: the memory of a value is freed after a node has touched it, and the value is
// recomputed where it is read next.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "lissome/train/budget/step_model.h"

namespace lissome {

// The value that owns the memory, and the position of the base schedule after which the memory is freed. The next
// reader recomputes the value with everything that this needs. The value then stays until its last reader, unless an
// entry with a later position frees it again.
using RecomputeEntry = std::pair<int, int>;
using RecomputeSet = std::set<RecomputeEntry>;

struct RecomputeSchedule {
  RunOrder schedule;
  // By position of `schedule`: the position of the base schedule that needs this run. A run of the base itself has its
  // own position.
  std::vector<int> purpose;
};

// Results of unrepeatable nodes stay in memory as long as a recomputation needs them.
RecomputeSchedule make_recompute_schedule(const StepModel& model, const RunOrder& base, const RecomputeSet& recomputed);

// The entries which, applied to the plain schedule, give a schedule like this one in which nothing is computed before
// it is read.
RecomputeSet find_recompute_set(const StepModel& model, const RunOrder& schedule);

// Judges many sets over the same base. The model must outlive the judge.
class RecomputeJudge {
 public:
  RecomputeJudge(const StepModel& model, const RunOrder& base, int64_t limit);

  RecomputeSchedule make(const RecomputeSet& recomputed) const;
  // Bytes above the limit count once for each node of the base, so that a recomputation does not count as an excess of
  // its own.
  ScheduleCost judge(const RecomputeSchedule& made) const;
  // Whether the value is read after this position of the base before the base computes it anew.
  bool is_read_next(int owner, int position) const;

 private:
  struct Touch {
    int position = 0;    // of the base
    bool reads = false;  // false: the value is computed here
  };
  const StepModel& model_;
  const RunOrder base_;
  const int64_t limit_;
  std::vector<std::vector<Touch>> touches_;  // by owner, in order
};

}  // namespace lissome

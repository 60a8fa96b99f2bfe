// Times of a planned step that can be compared, though they were measured at different moments and on different
// batches: by the nodes that two steps have in common.
#pragma once

#include <optional>
#include <vector>

#include "lissome/train/budget/search/planned_step.h"
#include "lissome/train/budget/search/planning_task.h"

namespace lissome {

// `seconds` by position of the schedule -> by node of `nodes`: the seconds of its first run, 0 where it never runs.
std::vector<double> list_first_runs(const RunOrder& schedule, const std::vector<double>& seconds, size_t nodes);

// The time of the nodes that both programs have: in `one`, by `seconds`, over that in `other`, by `others`. One program
// must be a rewrite of the other, so that the values of nodes in both have the same numbers. 1 where they share none.
double compare_shared_nodes(const Program& one, const std::vector<double>& seconds, const Program& other,
                            const std::vector<double>& others);

// Corrects the times of a task for a machine that was busier when it was measured than when `other` was.
void follow_clock(PlanningTask& task, const PlanningTask& other);

struct StepSeconds {
  double seconds = 0;        // of the chosen step
  double plain_seconds = 0;  // of the step of `whole` that keeps everything
};

// Replaces times that were scaled from few samples by the measured time of the chosen plan of `task` on `inputs`, the
// whole batch. The step of `whole` that keeps everything may not fit, so its time is corrected by the nodes that both
// steps have. If `whole` is another step than that of `task`, it is timed again on the samples `measured`, in turns
// with the plan, so that the machine is equally busy for both; neither is in memory during the other's turn. The turn
// with the median ratio counts. Nothing where the plan does not fit, where it keeps everything, and where it converts
// to bf16: conversions belong to no node. Inputs hold the weights too. Throws the errors of measure_nodes().
std::optional<StepSeconds> time_chosen(const PlanningTask& task, const PlannedStep& chosen, const PlanningTask& whole,
                                       const std::vector<at::Tensor>& measured, const std::vector<at::Tensor>& inputs);

}  // namespace lissome

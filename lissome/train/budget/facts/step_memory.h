// The memory of a step, predicted from its plan and its facts, and measured.
#pragma once

#include <cstdint>
#include <functional>

#include "lissome/train/budget/cost.h"

namespace lissome {

// The most bytes that the arena and libtorch hold at once while a step runs.
struct StepMemory {
  int64_t arena = 0, held = 0;
  int64_t total() const { return arena + held; }
};

// `plan` is the plan of the step after apply_schedule(), `sizes` those of all its inputs. Throws the errors of
// find_footprint().
StepMemory predict_memory(const StepFacts& facts, const RunOrder& schedule, const Plan& plan,
                          const std::vector<Sizes>& sizes, int threads);

// The most bytes of values that libtorch holds at once, with what its nodes take for themselves.
int64_t predict_held(const StepFacts& facts, const RunOrder& schedule);

// Measures the memory while `work` runs the session. libtorch's share is the most that its allocator gave this thread.
StepMemory measure_memory(const Session& session, const std::function<void()>& work);

}  // namespace lissome

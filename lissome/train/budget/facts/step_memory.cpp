// See step_memory.h.
#include "lissome/train/budget/facts/step_memory.h"

#include "lissome/footprint.h"
#include "lissome/train/budget/facts/thread_allocations.h"

namespace lissome {

int64_t predict_held(const StepFacts& facts, const RunOrder& schedule) {
  StepModel held = facts.model;
  for (size_t i = 0; i < held.bytes.size(); ++i) {
    if (!facts.held[i]) held.bytes[i] = 0;
  }
  for (size_t i = 0; i < held.nodes.size(); ++i)
    held.nodes[i].scratch = facts.held_scratch.empty() ? 0 : facts.held_scratch[i];
  return judge_schedule(held, schedule, INT64_MAX).peak;
}

StepMemory predict_memory(const StepFacts& facts, const RunOrder& schedule, const Plan& plan,
                          const std::vector<Sizes>& sizes, int threads) {
  return {find_footprint(plan, sizes, threads).arena_bytes, predict_held(facts, schedule)};
}

StepMemory measure_memory(const Session& session, const std::function<void()>& work) {
  ThreadAllocations allocations;
  work();
  return {session.memory().arena, allocations.counter().peak()};
}

}  // namespace lissome

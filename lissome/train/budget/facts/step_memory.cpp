// See step_memory.h.
#include "lissome/train/budget/facts/step_memory.h"

#include <algorithm>

#include "lissome/footprint.h"
#include "lissome/train/budget/facts/thread_allocations.h"

namespace lissome {

int64_t predict_held(const StepFacts& facts, const RunOrder& schedule) {
  StepModel held = facts.model;
  for (size_t i = 0; i < held.bytes.size(); ++i) {
    if (!facts.held[i]) held.bytes[i] = 0;
  }
  for (StepNode& node : held.nodes) {
    const bool native = std::none_of(node.results.begin(), node.results.end(),
                                     [&](int value) { return facts.held[static_cast<size_t>(value)]; });
    if (native) node.scratch = 0;
  }
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

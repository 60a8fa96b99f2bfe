// The executor: runs stages of work on several threads. Each stage is cut into parts, which threads claim as they come,
// so that a thread that is off the processor holds up no more than the part that it has claimed, and one that has not
// begun holds up nothing. In a process without libtorch the threads are workers of our own, which spin briefly between
// regions and then sleep; where libtorch is loaded it is the OpenMP thread pool that libtorch uses too, so that two
// pools never spin against each other.
#pragma once

#include <cstdint>
#include <span>

namespace lissome {

// Stages one after another: no part of a stage begins before all parts of the one before have ended, and what those
// wrote is seen. Who runs a part is open; how a stage is cut is not, so that results do not depend on who runs it.
struct Region {
  std::span<const int> parts;  // of each stage, 1 to kMostParts
  // Must not throw. Denormals are flushed while it runs.
  void (*run)(void* argument, int stage, int part) = nullptr;
  // Called by the caller's thread when a stage has ended; null where nobody wants to know.
  void (*ended)(void* argument, int stage) = nullptr;
  void* argument = nullptr;
};
inline constexpr int kMostParts = 1 << 15;

// Returns when all stages have ended. `threads`: how many may take part, the caller's included. Regions take turns, but
// for ThreadPoolScope. The pool goes on without its helpers for a while where they were off the processor so much that
// they brought nothing.
void run_region(int threads, const Region& region);

// Regions that this thread asks for while it stands run on a pool of its own, 0 to kThreadPools - 1; elsewhere on pool
// 0. Only regions of one pool take turns.
class ThreadPoolScope {
 public:
  explicit ThreadPoolScope(int pool);
  ~ThreadPoolScope();
  ThreadPoolScope(const ThreadPoolScope&) = delete;
  ThreadPoolScope& operator=(const ThreadPoolScope&) = delete;
  static constexpr int kThreadPools = 64;

 private:
  int before_;
};

// Looks whether libtorch is loaded by now; the regions after that use its pool. Called when a session is made.
void choose_executor();

// "own workers" or "openmp": which form the next region takes.
const char* executor_name();

// For tests: called by every thread of a pool before each claim and at each wait, from now on; null for nothing.
void disturb_thread_pools(void (*pause)());

}  // namespace lissome

// The executor: runs one function on several threads at once. In a process without libtorch these are workers of our
// own, which spin briefly between regions and then sleep; where libtorch is loaded it is the OpenMP team that libtorch
// uses too, so that two teams never spin against each other.
#pragma once

#include <atomic>
#include <cstdint>

namespace lissome {

// Keeps the threads of one region in step. Spins, and gives the processor away when that takes long.
class RegionBarrier {
 public:
  void wait(int threads);

 private:
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<uint32_t> phase_{0};
};

// `threads` is how many really run, from 1 to the number asked for; `thread` counts from 0, the caller.
using RegionFunction = void (*)(void* argument, int thread, int threads);

// Returns when all threads have returned. Regions of several sessions take turns, but for TeamScope. The function must
// not throw.
void run_region(int threads, RegionFunction function, void* argument);

// Regions that this thread asks for while it stands run on a team of its own, 0 to kTeams - 1; elsewhere on team 0.
// Only regions of one team take turns.
class TeamScope {
 public:
  explicit TeamScope(int team);
  ~TeamScope();
  TeamScope(const TeamScope&) = delete;
  TeamScope& operator=(const TeamScope&) = delete;
  static constexpr int kTeams = 64;

 private:
  int before_;
};

// Looks whether libtorch is loaded by now; the regions after that use its team. Called when a session is made.
void choose_executor();

// "own workers" or "openmp": which form the next region takes.
const char* executor_name();

}  // namespace lissome

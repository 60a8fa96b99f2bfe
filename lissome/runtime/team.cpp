#include "lissome/runtime/team.h"

#include <dlfcn.h>
#include <immintrin.h>
#include <sched.h>

#include <array>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "lissome/base.h"

namespace lissome {
namespace {

// Some microseconds: parts of a step end about together.
constexpr int kSpins = 128;
// About 50 us of waiting in all, then a worker sleeps: longer than the gaps inside a run, shorter than what a neighbour
// would notice.
constexpr int kLooks = 256;

// Between two looks at what is waited for. Whoever it comes from may wait for this very processor: after some spinning
// it is offered with each look, which costs little where nobody wants it.
void relax(int looks) {
  if (looks < kSpins) {
    _mm_pause();
  } else {
    sched_yield();
  }
}

// Two threads of a team on one processor take turns with every wait, and since both offer it at each look, the system
// may leave them there for long: this thread goes to another one that it may use, if there is one.
void leave_processor(int processor) {
  cpu_set_t allowed;
  if (processor < 0 || processor >= CPU_SETSIZE || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof(others), &others) != 0) return;
  sched_setaffinity(0, sizeof(allowed), &allowed);
}

class Workers {
 public:
  ~Workers() {
    stop_.store(true, std::memory_order_relaxed);
    wake_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void run(int threads, RegionFunction function, void* argument) {
    const std::lock_guard<std::mutex> lock(turn_);
    while (static_cast<int>(threads_.size()) < threads - 1) {
      const int index = static_cast<int>(threads_.size()) + 1;
      const uint32_t seen = region_.load(std::memory_order_relaxed);
      threads_.emplace_back([this, index, seen] { work(index, seen); });
    }
    function_ = function;
    argument_ = argument;
    count_ = threads;
    caller_processor_ = sched_getcpu();
    left_.store(static_cast<int>(threads_.size()), std::memory_order_relaxed);
    wake_all();
    function(argument, 0, threads);
    for (int looks = 0; left_.load(std::memory_order_acquire) != 0; ++looks) relax(looks);
  }

 private:
  void wake_all() {
    region_.fetch_add(1, std::memory_order_seq_cst);
    if (sleeping_.load(std::memory_order_seq_cst) != 0) region_.notify_all();
  }

  void work(int index, uint32_t seen) {
    while (true) {
      wait_for_change(seen);
      seen = region_.load(std::memory_order_acquire);
      if (stop_.load(std::memory_order_relaxed)) return;
      if (index < count_) {
        if (sched_getcpu() == caller_processor_) leave_processor(caller_processor_);
        function_(argument_, index, count_);
      }
      left_.fetch_sub(1, std::memory_order_release);
    }
  }

  void wait_for_change(uint32_t seen) {
    for (int looks = 0; looks < kLooks; ++looks) {
      if (region_.load(std::memory_order_acquire) != seen) return;
      relax(looks);
    }
    sleeping_.fetch_add(1, std::memory_order_seq_cst);
    while (region_.load(std::memory_order_seq_cst) == seen) region_.wait(seen, std::memory_order_seq_cst);
    sleeping_.fetch_sub(1, std::memory_order_relaxed);
  }

  std::mutex turn_;
  std::vector<std::thread> threads_;
  RegionFunction function_ = nullptr;
  void* argument_ = nullptr;
  int count_ = 0;
  int caller_processor_ = -1;
  alignas(64) std::atomic<uint32_t> region_{0};
  alignas(64) std::atomic<int> sleeping_{0};
  alignas(64) std::atomic<int> left_{0};
  std::atomic<bool> stop_{false};
};

// libgomp's own entry points, found in the copy that libtorch brought. The runtime links no OpenMP itself.
struct OpenMp {
  void (*parallel)(void (*)(void*), void*, unsigned threads, unsigned flags) = nullptr;
  int (*thread_number)() = nullptr;
  int (*thread_count)() = nullptr;
};

std::atomic<const OpenMp*> chosen_openmp{nullptr};

const OpenMp* find_openmp() {
  if (!dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD)) return nullptr;
  void* library = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return nullptr;
  static OpenMp openmp;
  openmp.parallel = reinterpret_cast<decltype(openmp.parallel)>(dlsym(library, "GOMP_parallel"));
  openmp.thread_number = reinterpret_cast<decltype(openmp.thread_number)>(dlsym(library, "omp_get_thread_num"));
  openmp.thread_count = reinterpret_cast<decltype(openmp.thread_count)>(dlsym(library, "omp_get_num_threads"));
  return openmp.parallel && openmp.thread_number && openmp.thread_count ? &openmp : nullptr;
}

struct OpenMpRegion {
  const OpenMp* openmp;
  RegionFunction function;
  void* argument;
};

void enter_openmp_region(void* argument) {
  const auto& region = *static_cast<OpenMpRegion*>(argument);
  region.function(region.argument, region.openmp->thread_number(), region.openmp->thread_count());
}

thread_local int current_team = 0;

// A team has no threads before its first region.
Workers& own_workers() {
  static std::array<Workers, TeamScope::kTeams> teams;
  return teams[static_cast<size_t>(current_team)];
}

}  // namespace

TeamScope::TeamScope(int team) : before_(current_team) {
  LISSOME_CHECK(team >= 0 && team < kTeams, "team ", team);
  current_team = team;
}
TeamScope::~TeamScope() { current_team = before_; }

void RegionBarrier::wait(int threads) {
  const uint32_t phase = phase_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1, std::memory_order_release);
    return;
  }
  for (int looks = 0; phase_.load(std::memory_order_acquire) == phase; ++looks) relax(looks);
}

void run_region(int threads, RegionFunction function, void* argument) {
  if (threads <= 1) {
    function(argument, 0, 1);
    return;
  }
  if (const OpenMp* openmp = chosen_openmp.load(std::memory_order_acquire)) {
    OpenMpRegion region = {openmp, function, argument};
    openmp->parallel(enter_openmp_region, &region, static_cast<unsigned>(threads), 0);
    return;
  }
  own_workers().run(threads, function, argument);
}

void choose_executor() {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!chosen_openmp.load()) chosen_openmp.store(find_openmp());
}

const char* executor_name() { return chosen_openmp.load() ? "openmp" : "own workers"; }

}  // namespace lissome

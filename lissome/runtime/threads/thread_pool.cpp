#include "lissome/runtime/threads/thread_pool.h"

#include <dlfcn.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "lissome/base.h"
#include "lissome/measure.h"
#include "lissome/runtime/session/denormals.h"
#include "lissome/runtime/session/region_progress.h"
#include "lissome/runtime/threads/helper_gain.h"

namespace lissome {
namespace {

// About 50 us of waiting in all, then a worker sleeps: longer than the gaps between regions, shorter than what a
// neighbour would notice.
constexpr int kLooks = 256;

// Two threads of a pool on one processor take turns with every wait, and since both offer it at each look, the system
// may leave them there for long: this thread goes to another one that it may use, if there is one.
void leave_processor(int processor) {
  cpu_set_t allowed;
  if (processor < 0 || processor >= CPU_SETSIZE || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof(others), &others) != 0) return;
  sched_setaffinity(0, sizeof(allowed), &allowed);
}

void run_alone(const Region& region) {
  for (size_t i = 0; i < region.parts.size(); ++i) {
    const int stage = static_cast<int>(i);
    for (int part = 0; part < region.parts[i]; ++part) region.run(region.argument, stage, part);
    if (region.ended) region.ended(region.argument, stage);
  }
}

class Workers {
 public:
  ~Workers() {
    stop_.store(true, std::memory_order_relaxed);
    open(0, {});
    for (std::thread& thread : threads_) thread.join();
  }

  void run(int threads, const Region& region) {
    const std::lock_guard<std::mutex> lock(turn_);
    if (gain_.is_paused() && !gain_.is_worth_trying(now_nanoseconds())) return run_alone(region);
    while (static_cast<int>(threads_.size()) < threads - 1) {
      const int index = static_cast<int>(threads_.size()) + 1;
      const uint32_t seen = progress_.sequence().load(std::memory_order_relaxed);
      threads_.emplace_back([this, index, seen] { work(index, seen); });
    }
    const int64_t start = gain_.wants_time() ? now_nanoseconds() : 0;
    open(threads, region);
    const RegionProgress::OwnerFacts facts = progress_.work_as_owner(region);
    // Waits that are long are known without a clock at the start.
    if (start == 0 && facts.waited == 0) return;
    const int64_t end = now_nanoseconds();
    gain_.note(end, start == 0 ? facts.waited : end - start, facts.waited, facts.own_share);
  }

 private:
  void open(int threads, const Region& region) {
    progress_.open(threads, region, sched_getcpu());
    if (sleeping_.load(std::memory_order_seq_cst) != 0) progress_.sequence().notify_all();
  }

  void work(int index, uint32_t seen) {
    const FlushDenormals flush;
    while (true) {
      wait_for_change(seen);
      seen = progress_.sequence().load(std::memory_order_acquire);
      if (stop_.load(std::memory_order_relaxed)) return;
      const int caller = progress_.owner_processor();
      if (sched_getcpu() == caller) leave_processor(caller);
      progress_.work_as_helper(index);
    }
  }

  void wait_for_change(uint32_t seen) {
    std::atomic<uint32_t>& sequence = progress_.sequence();
    for (int looks = 0; looks < kLooks; ++looks) {
      if (sequence.load(std::memory_order_acquire) != seen) return;
      relax(looks);
    }
    sleeping_.fetch_add(1, std::memory_order_seq_cst);
    while (sequence.load(std::memory_order_seq_cst) == seen) sequence.wait(seen, std::memory_order_seq_cst);
    sleeping_.fetch_sub(1, std::memory_order_relaxed);
  }

  std::mutex turn_;
  std::vector<std::thread> threads_;
  RegionProgress progress_;
  HelperGain gain_;
  alignas(64) std::atomic<int> sleeping_{0};
  std::atomic<bool> stop_{false};
};

// libgomp's own entry points, found in the copy that libtorch brought. The runtime links no OpenMP itself.
struct OpenMp {
  void (*parallel)(void (*)(void*), void*, unsigned threads, unsigned flags) = nullptr;
  int (*thread_number)() = nullptr;
};

std::atomic<const OpenMp*> chosen_openmp{nullptr};

const OpenMp* find_openmp() {
  if (!dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD)) return nullptr;
  void* library = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return nullptr;
  static OpenMp openmp;
  openmp.parallel = reinterpret_cast<decltype(openmp.parallel)>(dlsym(library, "GOMP_parallel"));
  openmp.thread_number = reinterpret_cast<decltype(openmp.thread_number)>(dlsym(library, "omp_get_thread_num"));
  return openmp.parallel && openmp.thread_number ? &openmp : nullptr;
}

// OpenMP has a pool for each thread that asks, whose threads all have to come before its region ends.
class OpenMpPool {
 public:
  void run(const OpenMp& openmp, int threads, const Region& region) {
    if (gain_.is_paused() && !gain_.is_worth_trying(now_nanoseconds())) return run_alone(region);
    const int64_t start = now_nanoseconds();
    progress_.open(threads, region);
    openmp_ = &openmp, region_ = &region;
    openmp.parallel(enter, this, static_cast<unsigned>(threads), 0);
    const int64_t end = now_nanoseconds();
    gain_.note(end, end - start, facts_.waited + end - left_, facts_.own_share);
  }

 private:
  static void enter(void* argument) {
    auto& pool = *static_cast<OpenMpPool*>(argument);
    const FlushDenormals flush;
    const int thread = pool.openmp_->thread_number();
    if (thread != 0) return pool.progress_.work_as_helper(thread);
    pool.facts_ = pool.progress_.work_as_owner(*pool.region_);
    pool.left_ = now_nanoseconds();
  }

  const OpenMp* openmp_ = nullptr;
  const Region* region_ = nullptr;
  RegionProgress progress_;
  RegionProgress::OwnerFacts facts_;
  int64_t left_ = 0;  // when the caller's thread had nothing more to do
  HelperGain gain_;
};

thread_local int current_pool = 0;

// A pool has no threads before its first region.
Workers& own_workers() {
  static std::array<Workers, ThreadPoolScope::kThreadPools> pools;
  return pools[static_cast<size_t>(current_pool)];
}

}  // namespace

ThreadPoolScope::ThreadPoolScope(int pool) : before_(current_pool) {
  LISSOME_CHECK(pool >= 0 && pool < kThreadPools, "thread pool ", pool);
  current_pool = pool;
}
ThreadPoolScope::~ThreadPoolScope() { current_pool = before_; }

void run_region(int threads, const Region& region) {
  const FlushDenormals flush;
  if (threads <= 1) return run_alone(region);
  if (const OpenMp* openmp = chosen_openmp.load(std::memory_order_acquire)) {
    thread_local OpenMpPool pool;
    return pool.run(*openmp, threads, region);
  }
  own_workers().run(threads, region);
}

void choose_executor() {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!chosen_openmp.load()) chosen_openmp.store(find_openmp());
}

const char* executor_name() { return chosen_openmp.load() ? "openmp" : "own workers"; }

}  // namespace lissome

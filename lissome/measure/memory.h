// Two views of memory: bytes that lissome's and libtorch's allocators hold, counted where they are taken and given
// back; and the resident set that the kernel reports.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <string_view>

namespace lissome {

// Bytes live and their peak, and how many may be live. Lock-free; one counter serves every allocator of the process.
class MemoryCounter {
 public:
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

  void add(int64_t bytes) { raise_peak(live_.fetch_add(bytes, std::memory_order_relaxed) + bytes); }
  // The same, unless the limit would be passed: then throws over_budget, naming `what` does not fit.
  void take(int64_t bytes, std::string_view what);
  void remove(int64_t bytes) { live_.fetch_sub(bytes, std::memory_order_relaxed); }
  int64_t live() const { return live_.load(std::memory_order_relaxed); }
  int64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  void reset_peak() { peak_.store(live(), std::memory_order_relaxed); }
  // After a time that had a peak of its own: the peak is at least `bytes`.
  void raise_peak(int64_t bytes) {
    int64_t peak = peak_.load(std::memory_order_relaxed);
    while (bytes > peak && !peak_.compare_exchange_weak(peak, bytes, std::memory_order_relaxed)) {
    }
  }

  // Of live bytes. Two threads that take at once may pass it by what one of them takes.
  void set_limit(int64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  int64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  bool fits(int64_t bytes) const { return bytes <= limit() - live(); }

 private:
  std::atomic<int64_t> live_{0}, peak_{0}, limit_{kUnlimited};
};

// Of this process: arenas and outputs of sessions; libtorch's CPU allocator counts where it is metered (training).
MemoryCounter& allocator_memory();

// Of a stretch of work: bytes above what was live when it began.
struct MemoryUse {
  int64_t peak = 0;  // the most
  int64_t kept = 0;  // at its end
  // What is kept over the peak: 1 where nothing was temporary, and where nothing was taken.
  double efficiency() const { return peak > 0 ? static_cast<double>(kept) / static_cast<double>(peak) : 1; }
};

// Measures from where it is made to finish(); one within another is right for both. Counted is
// what allocator_memory() counts: libtorch's tensors from meter_allocations() on.
class MemoryProbe {
 public:
  MemoryProbe();
  ~MemoryProbe();
  MemoryProbe(const MemoryProbe&) = delete;
  MemoryProbe& operator=(const MemoryProbe&) = delete;

  MemoryUse finish();

 private:
  int64_t start_, peak_before_;
};

struct ResidentMemory {
  int64_t now = 0;   // VmRSS, bytes
  int64_t peak = 0;  // VmHWM, bytes, since the last reset_resident_peak()
};
ResidentMemory read_resident_memory();
// Restarts the kernel's high-water mark; false where /proc/self/clear_refs may not be written.
bool reset_resident_peak();

}  // namespace lissome

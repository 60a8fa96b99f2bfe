// Two views of memory: bytes that lissome's and libtorch's allocators hold, counted where they are taken and given
// back; and the resident set that the kernel reports.
#pragma once

#include <atomic>
#include <cstdint>

namespace lissome {

// Bytes live and their peak. Lock-free; one counter serves every allocator of the process.
class MemoryCounter {
 public:
  void add(int64_t bytes) {
    const int64_t live = live_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    int64_t peak = peak_.load(std::memory_order_relaxed);
    while (live > peak && !peak_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
    }
  }
  void remove(int64_t bytes) { live_.fetch_sub(bytes, std::memory_order_relaxed); }
  int64_t live() const { return live_.load(std::memory_order_relaxed); }
  int64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  void reset_peak() { peak_.store(live(), std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> live_{0}, peak_{0};
};

// Of this process: arenas and arrays of lissome; libtorch's CPU allocator adds itself where it is hooked.
MemoryCounter& allocator_memory();

struct ResidentMemory {
  int64_t now = 0;   // VmRSS, bytes
  int64_t peak = 0;  // VmHWM, bytes, since the last reset_resident_peak()
};
ResidentMemory read_resident_memory();
// Restarts the kernel's high-water mark; false where /proc/self/clear_refs may not be written.
bool reset_resident_peak();

}  // namespace lissome

// See thread_allocations.h.
#include "lissome/train/budget/facts/thread_allocations.h"

#include <c10/core/Allocator.h>

namespace lissome {

// The allocator reports to whoever sits in the slot of the profiler.
class ThreadAllocations::Listener : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device) override {
    bytes > 0 ? counter_.add(bytes) : counter_.remove(-bytes);
  }
  bool memoryProfilingEnabled() const override { return true; }
  MemoryCounter& counter() { return counter_; }

 private:
  MemoryCounter counter_;
};

ThreadAllocations::ThreadAllocations()
    : listener_(std::make_shared<Listener>()), guard_(c10::DebugInfoKind::PROFILER_STATE, listener_) {}

MemoryCounter& ThreadAllocations::counter() { return listener_->counter(); }

}  // namespace lissome

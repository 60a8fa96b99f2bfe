// The memory that libtorch's CPU allocator gives to one thread, for measuring a step.
#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>

#include <memory>

#include "lissome/measure.h"

namespace lissome {

// Counts the bytes that libtorch's CPU allocator gives to this thread and takes back, from where it is made to where it
// ends. It must end on the thread that made it.
class ThreadAllocations {
 public:
  ThreadAllocations();
  MemoryCounter& counter();

 private:
  class Listener;
  std::shared_ptr<Listener> listener_;
  c10::DebugInfoGuard guard_;
};

}  // namespace lissome

// Where the memory of a training goes: bytes by kind, over the time of a step, and by the modules and source lines
// whose values are alive at the peak of a step. Plain data; the numbers of a step come from its plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lissome/runtime.h"

namespace lissome {

// Bytes at one moment of a training, between two steps.
struct MemoryRecord {
  int64_t step = 0;                                // number of the last step that ran, from 1
  int64_t weights = 0, gradients = 0, states = 0;  // of the model; states of the optimizer
  int64_t batch = 0;                               // inputs of the samples that run at once
  int64_t activations = 0, scratch = 0;            // at the peak of a step
  int64_t reserved = 0;                            // for activations and scratch
  int64_t allocated = 0;                           // held by allocators now
  int64_t resident = 0, resident_peak = 0;         // of the process
};

// Values of one module and one line of the user's code that are alive at the peak of a step.
struct MemoryPlace {
  std::string module, source;  // "blocks.3.mlp", "model.py:41"; empty where unknown
  int64_t bytes = 0;
  int64_t values = 0;
};

// Largest first.
std::vector<MemoryPlace> list_memory_places(const Plan& plan, const MemoryTimeline& timeline);

// Reports when the bytes that allocators hold between steps keep growing.
class LeakCheck {
 public:
  // `allocated`: bytes, always observed at the same point of a step. The first growth does not count, because caches
  // fill. Returns true once, when the bytes have grown five times in a row, by 1 MiB or more in all.
  bool observe(int64_t allocated);
  int64_t growth() const { return last_ - start_; }  // bytes over those observations

 private:
  int64_t start_ = 0, last_ = 0;
  int moments_ = 0, rising_ = 0;
  bool reported_ = false;
};

}  // namespace lissome

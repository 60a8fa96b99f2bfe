// Where the memory of a training goes: bytes by kind, over a step, and by the modules and source lines whose values are
// alive when a step takes most. Plain data; the numbers of a step come from its plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lissome/runtime.h"

namespace lissome {

// Bytes at one moment of a training, between two steps.
struct MemoryRecord {
  int64_t step = 0;                                // the last that ran, from 1
  int64_t weights = 0, gradients = 0, states = 0;  // of the model, and of the optimizer
  int64_t batch = 0;                               // inputs of a part
  int64_t activations = 0, scratch = 0;            // where a step takes most
  int64_t reserved = 0;                            // for activations and scratch
  int64_t allocated = 0;                           // held by allocators now
  int64_t resident = 0, resident_peak = 0;         // of the process
};

// Values of a module, made on one line of the user's code, that are alive when a step takes most.
struct MemoryPlace {
  std::string module, source;  // "blocks.3.mlp", "model.py:41"; empty where nothing is known
  int64_t bytes = 0;
  int64_t values = 0;
};

// Largest first.
std::vector<MemoryPlace> list_memory_places(const Plan& plan, const MemoryTimeline& timeline);

// Tells when what allocators hold between steps keeps growing.
class LeakCheck {
 public:
  // `allocated` bytes, at moments of like kind. The first growth is caches that fill. True once growth has gone on for
  // five moments in a row, by 1 MiB or more.
  bool observe(int64_t allocated);
  int64_t growth() const { return last_ - start_; }  // bytes, over those moments

 private:
  int64_t start_ = 0, last_ = 0;
  int moments_ = 0, rising_ = 0;
  bool told_ = false;
};

}  // namespace lissome

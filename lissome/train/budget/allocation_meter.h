// The memory that libtorch's CPU allocator holds: counted into allocator_memory() beside lissome's own, and bounded
// where a budget says so. Counted are tensors and what oneDNN takes through ideep; not counted are files mapped into
// memory and what was taken before meter_allocations(), whose release then counts for nothing either.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "lissome/program.h"

namespace lissome {

// From the first call on, for the rest of the process. Call it before other threads use libtorch.
void meter_allocations();

// Whether the memory of this tensor is counted; views answer for what they look into.
bool is_metered(const at::Tensor& tensor);

// While it lives, allocator_memory() refuses to pass `bytes` live: arenas and outputs of sessions with over_budget,
// tensors with c10::OutOfMemoryError, which interpret() reports as over_budget. Meters allocations. One at a time in a
// process: a second is an internal error.
class AllocationLimit {
 public:
  explicit AllocationLimit(int64_t bytes);
  ~AllocationLimit();
  AllocationLimit(const AllocationLimit&) = delete;
  AllocationLimit& operator=(const AllocationLimit&) = delete;
};

// The memory of a training, from its making on, which comes when the step is prepared: what is live above what was
// before anything of it was made, and the model's weights.
class TrainingMemory {
 public:
  // `before` is allocator_memory().live() then. `bytes` is its limit, 0 for none; with `bound` a limit is set all the
  // same: four fifths of what the machine has beside what this process holds. Of the weights, `in_file` bytes take no
  // memory. Throws over_budget when the others alone are more than the limit.
  TrainingMemory(const Program& model, int64_t before, int64_t bytes, bool bound, int64_t in_file);
  int64_t peak() const;

 private:
  int64_t weights_, before_;
  std::optional<AllocationLimit> limit_;
};

}  // namespace lissome

// Counts the memory of libtorch's CPU allocator into allocator_memory(), beside lissome's own memory, and limits it to
// a budget. Tensors and the memory that oneDNN takes through ideep are counted. Files mapped into memory are not, nor
// is memory that was allocated before meter_allocations(); its release does not count either.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "lissome/program.h"

namespace lissome {

// Counts from the first call to the end of the process. Call it before other threads use libtorch.
void meter_allocations();

// Whether the memory of this tensor is counted. For a view this is the memory that it views.
bool is_metered(const at::Tensor& tensor);

// Limits allocator_memory() to `bytes` while it lives: arenas and outputs of sessions then throw over_budget, and
// tensors c10::OutOfMemoryError, which interpret() reports as over_budget. Starts to meter allocations. A process may
// have one at a time; a second is an internal error.
class AllocationLimit {
 public:
  explicit AllocationLimit(int64_t bytes);
  ~AllocationLimit();
  AllocationLimit(const AllocationLimit&) = delete;
  AllocationLimit& operator=(const AllocationLimit&) = delete;
};

// The memory of a training: the bytes that are live above those before the training began, and the model's weights. It
// is made once the step is prepared.
class TrainingMemory {
 public:
  // `before`: allocator_memory().live() before the training began. `bytes`: the limit, or 0 for none; `bound` then sets
  // one nevertheless, four fifths of the machine's memory that this process does not hold. `in_file`: bytes of the
  // weights that take no memory. Throws over_budget when the other weights alone exceed the limit.
  TrainingMemory(const Program& model, int64_t before, int64_t bytes, bool bound, int64_t in_file);
  int64_t peak() const;

 private:
  int64_t weights_, before_;
  std::optional<AllocationLimit> limit_;
};

}  // namespace lissome

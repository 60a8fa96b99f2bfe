// Where the values of a run lie: in arrays of the plan, in the session's own copies of state, in the arena, or in
// memory of the caller or of libtorch, whose address is given anew in every run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lissome/base.h"
#include "lissome/runtime/memory/arena.h"
#include "lissome/runtime/plan/plan.h"
#include "lissome/runtime/session/binding.h"

namespace lissome {

class RunMemory {
 public:
  // Copies the state of the plan, which must outlive this.
  explicit RunMemory(const Plan& plan);

  // Writes the addresses that stay, those of constants and state, into the calls of a new binding.
  void place_arrays(Binding& binding) const;
  // Makes the arena large enough for a run of this binding. To be called before each run, for known sizes too: one that
  // did not fit may have left nothing. Throws over_budget.
  void place_arena(Binding& binding);
  // Gives the arena back; the next place_arena() takes it anew.
  void release_arena() { arena_.release(); }
  // Tells where a value lies in this run that is neither constant nor state nor in the arena.
  void place(Binding& binding, PlanValueId value, void* address) {
    address_[static_cast<size_t>(value)] = address;
    binding.place_block(block_of(value), address);
  }

  // Address of the first element. Not for values that libtorch holds, unless they were placed.
  std::byte* address_of(const Binding& binding, PlanValueId value) const;
  TensorView view_of(const Binding& binding, PlanValueId value) const;
  // Copies the elements of a value to dense memory in row order, which must not overlap it.
  void copy_to(std::byte* to, const Binding& binding, PlanValueId value) const;

  // By Plan::arrays; the session's own copies where they are state.
  const std::vector<Array>& arrays() const { return arrays_; }
  const Array& array_of(const PlanValue& value) const { return arrays_[static_cast<size_t>(value.array)]; }
  int64_t state_bytes() const { return state_bytes_; }
  int64_t arena_bytes() const { return arena_.bytes(); }
  // Bytes of weights and state, each array once.
  struct ArrayBytes {
    int64_t weights = 0, state = 0;
  };
  ArrayBytes count_arrays() const;

 private:
  const Plan& plan_;
  std::vector<Array> arrays_;
  int64_t state_bytes_ = 0;
  std::vector<void*> address_;  // by value, of those that place() tells
  Arena arena_;
};

}  // namespace lissome

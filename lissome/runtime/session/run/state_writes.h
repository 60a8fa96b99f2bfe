// The writes of a plan: new values of its state, which take the place of the old ones when a run has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lissome/base.h"
#include "lissome/runtime/plan/plan.h"
#include "lissome/runtime/session/binding.h"
#include "lissome/runtime/session/run/held_values.h"
#include "lissome/runtime/session/run/run_memory.h"

namespace lissome {

class StateWrites {
 public:
  // All arguments must outlive this.
  StateWrites(const Plan& plan, RunMemory& memory, HeldValues& held);

  // Writes the new state. Throws invalid_input where a value does not fit; the state is then as before.
  void store(const Binding& binding);
  // Bytes that the new values take beside the state.
  int64_t bytes() const;

 private:
  void read_fresh(size_t write, const Binding& binding);

  const Plan& plan_;
  RunMemory& memory_;
  HeldValues& held_;
  std::vector<Array> fresh_;  // by write: the new value until all of them have been read
};

}  // namespace lissome

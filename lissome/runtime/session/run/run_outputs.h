// How outputs leave a run: made in the memory in which they leave where that is possible, copied at the end of the run,
// or given away behind a step.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lissome/base.h"
#include "lissome/runtime/memory/output_pool.h"
#include "lissome/runtime/plan/plan.h"
#include "lissome/runtime/session/binding.h"
#include "lissome/runtime/session/run/held_values.h"
#include "lissome/runtime/session/run/run_memory.h"
#include "lissome/runtime/session/session.h"

namespace lissome {

class RunOutputs {
 public:
  // All arguments must outlive this.
  RunOutputs(const Plan& plan, RunMemory& memory, HeldValues& held);

  // Before a run whose outputs become arrays: allocates those that steps write directly, and places them. By output;
  // the others are empty yet. Throws over_budget.
  std::vector<Array> allocate(Binding& binding);
  // After that run: fills the others in, but those that left early.
  void fetch(std::vector<Array>& outputs, const Binding& binding);

  // Before a run into the caller's memory, a view for each output. Throws invalid_input where one does not fit.
  void place(std::span<const TensorView> places, Binding& binding);
  // After that run. Throws invalid_input where a place does not fit.
  void store(std::span<const TensorView> places, const Binding& binding);

  // Gives away the outputs that leave behind this step of the plan.
  void give_behind(int step, const Binding& binding, const OutputTaker& taker);

 private:
  bool is_direct(size_t output) const;
  Array make_array(const PlacedValue& value);  // not filled
  Array fetch_one(size_t output, const Binding& binding);
  void store_one(size_t output, const Binding& binding, const TensorView& place);
  void check_place(size_t output, const TensorView& place, Dtype dtype, std::span<const int64_t> sizes) const;

  const Plan& plan_;
  RunMemory& memory_;
  HeldValues& held_;
  OutputPool pool_;
  std::vector<int> direct_;                   // by value: the output in whose memory it is made, -1
  std::vector<std::vector<size_t>> leaving_;  // by step of the plan: outputs that are given away behind it
};

}  // namespace lissome

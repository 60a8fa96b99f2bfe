// The values of a run that libtorch holds, and the steps of the plan that it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lissome/base.h"
#include "lissome/runtime/plan/plan.h"
#include "lissome/runtime/session/binding.h"
#include "lissome/runtime/session/reference.h"
#include "lissome/runtime/session/run/run_memory.h"

namespace lissome {

class HeldValues {
 public:
  // Loads the reference library if the plan has steps for it; throws the errors of open_reference(). `plan` and
  // `memory` must outlive this.
  HeldValues(const Plan& plan, RunMemory& memory, int threads);

  // Whether libtorch runs any step; no other function but clear() is called else.
  bool exist() const { return run_ != nullptr; }
  // Forgets the values of the last run. Before a run too: what one that failed holds may be what the arena lacks.
  void clear() {
    if (run_) run_->clear();
  }
  // Runs a step of the plan. Results that native steps read are placed in memory.
  void run_step(int step, Binding& binding, const StepSink* sink);
  // Drops the values that nobody needs once this step of the plan has run.
  void drop_behind(int step) {
    for (const PlanValueId value : drops_[static_cast<size_t>(step)]) run_->drop(value);
  }

  // The value of an output, or of a write (they count from Plan::outputs.size() on), at the end of a run. The last one
  // that leaves with a value gets the memory itself, the others a copy.
  Array fetch(PlanValueId value, size_t leaving) {
    return leaves_again_[leaving] ? run_->copy(value) : run_->take(value);
  }
  // The value of an output that leaves early, behind its step and before drop_behind().
  Array fetch_early(size_t output);

  int64_t packed_bytes() const { return reference_ ? reference_->packed_bytes() : 0; }

 private:
  void lend_operands(const PlanStep& step, const Binding& binding);

  const Plan& plan_;
  RunMemory& memory_;
  std::vector<bool> natively_read_;              // by value
  std::vector<bool> leaves_again_;               // by output, then by write: a later one needs the same value
  std::vector<std::vector<PlanValueId>> drops_;  // by step of the plan
  std::unique_ptr<Reference> reference_;
  std::unique_ptr<ReferenceRun> run_;
};

}  // namespace lissome

// Runs native steps on the thread pool, times them if asked, and finds out whether the data led a kernel astray.
#pragma once

#include <cstdint>
#include <vector>

#include "lissome/runtime/plan/plan.h"
#include "lissome/runtime/session/binding.h"
#include "lissome/runtime/session/reference.h"
#include "lissome/runtime/session/run/run_memory.h"

namespace lissome {

class NativeRunner {
 public:
  // `plan` must outlive this, and this the bindings that it ran.
  NativeRunner(const Plan& plan, int threads) : plan_(plan), threads_(threads) {}
  NativeRunner(const NativeRunner&) = delete;
  NativeRunner& operator=(const NativeRunner&) = delete;

  int threads() const { return threads_; }
  // Writes the address of the words of a run into the calls of a new binding.
  void place_words(Binding& binding) { binding.place_block(Binding::kRunBlock, &words_); }
  // To be called before each run.
  void begin_run() { words_.fault = 0, ++words_.run; }
  // Runs bound steps [first, last) as one region. `sink` is called with what each took; it may be null.
  void run(const Binding& binding, int first, int last, const StepSink* sink);
  // Throws invalid_input, naming the node, if an index in the data was out of range since begin_run().
  void check_fault(const Binding& binding, const RunMemory& memory) const {
    if (words_.fault != 0) refuse_index(binding, memory);
  }
  // Tells what a step took.
  void report(const StepSink& sink, const BoundStep& step, int64_t nanoseconds) const;

 private:
  [[noreturn]] void refuse_index(const Binding& binding, const RunMemory& memory) const;

  const Plan& plan_;
  int threads_;
  RunWords words_;
  std::vector<int64_t> stamps_;  // the time after each stage of a region that is timed, nanoseconds
};

}  // namespace lissome

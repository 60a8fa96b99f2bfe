// How much memory weights may take: all of it, what a limit of the session leaves, or what the caller allows for inputs
// that come from a file. Weights beyond that stream from their file while a run computes (weight_stream.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "lissome/base.h"
#include "lissome/runtime/memory/weight_stream.h"
#include "lissome/runtime/plan/plan.h"
#include "lissome/runtime/session/binding.h"
#include "lissome/runtime/session/run/run_memory.h"

namespace lissome {

class WeightMemory {
 public:
  // `limit`: bytes of weights, state and intermediate values together; 0: none. `plan` and `memory` must outlive this.
  // Throws unsupported for a limit on a plan with nodes that run in libtorch, and over_budget when not even the weights
  // of the largest layer and the state fit.
  WeightMemory(const Plan& plan, const RunMemory& memory, int64_t limit);

  bool has_limit() const { return limit_ > 0; }
  bool streams() const { return stream_ != nullptr; }
  // To be called for each new binding, before its arena is made: what that leaves of the limit is for weights. Throws
  // over_budget when it leaves too little.
  void fit(const Binding& binding);
  // See Session::stream_inputs(); book_rows() follows for each binding there is. Throws unsupported under a limit.
  void stream_inputs(std::span<const size_t> inputs, int64_t bytes);
  // Where weights stream: tells the stream how many rows of each table the steps of a binding choose.
  void book_rows(const Binding& binding);

  // Around each run: begin_run() finds out where inputs lie that stream, and throws over_budget when the largest step
  // reads more of them than may be in memory.
  void begin_run(std::span<const TensorView> inputs);
  void finish_run() {
    if (stream_) stream_->finish();
  }
  // Where weights stream: returns when those of this step of the plan are there. The result is the step up to which
  // those of all others are there too.
  int advance(int step) { return stream_->advance(step); }

  StreamFacts facts() const { return stream_ ? stream_->facts() : StreamFacts{}; }

 private:
  void check_limit(int64_t arena_bytes) const;

  const Plan& plan_;
  const RunMemory& memory_;
  int64_t limit_;
  int64_t input_bytes_ = 0;               // of inputs that stream, in memory at once at most
  std::unique_ptr<WeightStream> stream_;  // under a limit, or where inputs stream
};

}  // namespace lissome

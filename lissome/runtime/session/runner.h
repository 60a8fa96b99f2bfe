// The inside of a session. A run binds the sizes of its inputs, places inputs and outputs, and goes over the segments
// of the binding; each part of that has a class of its own in run/. Runs of one session take turns.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "lissome/runtime/session/binding.h"
#include "lissome/runtime/session/run/binding_cache.h"
#include "lissome/runtime/session/run/held_values.h"
#include "lissome/runtime/session/run/native_runner.h"
#include "lissome/runtime/session/run/run_memory.h"
#include "lissome/runtime/session/run/run_outputs.h"
#include "lissome/runtime/session/run/state_writes.h"
#include "lissome/runtime/session/run/stop_poll.h"
#include "lissome/runtime/session/run/transfer_file.h"
#include "lissome/runtime/session/run/weight_memory.h"
#include "lissome/runtime/session/session.h"

namespace lissome {

// The number of threads: `asked`, or if that is 0 those that the plan was made for and measured with, at most all that
// this process may use.
int choose_threads(const Plan& plan, int asked);

// The listeners of a run; either may be null.
struct RunListeners {
  const StepSink* sink = nullptr;
  const OutputTaker* taker = nullptr;
};

// For its functions see those of Session with the same names.
class Session::Runner {
 public:
  Runner(std::shared_ptr<const Plan> plan, const SessionOptions& options);

  std::vector<Array> run(std::span<const TensorView> inputs, const RunListeners& listeners);
  void run_into(std::span<const TensorView> inputs, std::span<const TensorView> outputs, const RunListeners& listeners);
  MemoryFacts memory();
  StreamFacts stream();
  void stream_inputs(std::span<const size_t> inputs, int64_t bytes);
  void stop_runs(std::function<bool()> should_stop);
  void release_memory();
  const Plan& plan() const { return *plan_; }
  int threads() const { return native_.threads(); }

 private:
  Binding& bind(std::span<const TensorView> inputs);
  Binding& make_binding(std::span<const TensorView> inputs);
  // Where no size varies, so that the first run finds its memory planned and faulted in.
  void bind_fixed_sizes();
  void execute(Binding& binding, std::span<const TensorView> inputs, const RunListeners& listeners);
  void run_segments(Binding& binding, std::span<const TensorView> inputs, const RunListeners& listeners);
  void run_segment(Binding& binding, const Segment& segment, const StepSink* sink);
  void run_native(const Binding& binding, const Segment& segment, const StepSink* sink);
  void run_transfer(const Binding& binding, size_t position, const StepSink* sink);
  void finish_steps(const Binding& binding, int first, int last, const OutputTaker* taker);

  std::shared_ptr<const Plan> plan_;
  std::mutex mutex_;
  NativeRunner native_;  // before the bindings, which point to its words
  BindingCache bindings_;
  RunMemory memory_;
  WeightMemory weights_;
  TransferFile file_;
  HeldValues held_;
  RunOutputs outputs_;
  StateWrites state_;
  StopPoll stop_;
};

}  // namespace lissome

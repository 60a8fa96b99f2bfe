// The inside of a session: bindings by shape, the arena, and the loop over segments.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "lissome/runtime/memory/arena.h"
#include "lissome/runtime/memory/unnamed_file.h"
#include "lissome/runtime/memory/weight_stream.h"
#include "lissome/runtime/session/binding.h"
#include "lissome/runtime/session/session.h"
#include "lissome/runtime/threads/thread_pool.h"

namespace lissome {

// Those asked for; else those that the plan was made for, which was measured, at most all that this process may use.
int choose_threads(const Plan& plan, int asked);

// Who listens to a run; either may be null.
struct RunListeners {
  const StepSink* sink = nullptr;
  const OutputTaker* taker = nullptr;
};

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
  int threads() const { return threads_; }

 private:
  struct Entry {
    std::vector<int64_t> key;  // all input sizes, one behind the other
    std::unique_ptr<Binding> binding;
  };

  Binding& bind(std::span<const TensorView> inputs);
  void open_file(const std::string& folder);
  // Where no size varies, so that the first run finds its memory planned and faulted in.
  void bind_fixed_sizes();
  void fit_memory(const Binding* binding);
  void book_rows(const Binding& binding);
  void fit_inputs(std::span<const TensorView> inputs);
  void place(Binding& binding, int block, void* address);
  void execute(Binding& binding, std::span<const TensorView> inputs, const RunListeners& listeners);
  void run_segments(Binding& binding, std::span<const TensorView> inputs, const RunListeners& listeners);
  void run_native(Binding& binding, const Segment& segment, const StepSink* sink);
  size_t count_steps_between_polls() const;
  void poll_stop() const;
  void run_steps(std::span<const BoundStep> steps, const StepSink* sink);
  void run_reference(Binding& binding, const Segment& segment, const StepSink* sink);
  void run_transfer(const Binding& binding, size_t position, const StepSink* sink);
  void tell(const StepSink& sink, const BoundStep& step, int64_t nanoseconds) const;
  void check_fault(const Binding& binding);
  std::string describe_indices(const Binding& binding, const PlanStep& step) const;
  std::byte* address_of(const Binding& binding, int value) const;
  TensorView view_of(const Binding& binding, int value) const;
  bool is_direct(size_t output) const;
  Array fetch_held(int value, size_t leaving);
  void finish_steps(const Binding& binding, int first, int last, const OutputTaker* taker);
  void give_output(const Binding& binding, size_t output, const OutputTaker& taker);
  Array fetch_output(const Binding& binding, size_t i);
  void check_place(size_t i, const TensorView& place, Dtype dtype, std::span<const int64_t> sizes) const;
  void store_output(const Binding& binding, size_t i, const TensorView& place);
  void store_state(const Binding& binding);

  std::shared_ptr<const Plan> plan_;
  int threads_ = 1;
  size_t cached_shapes_ = 16;
  int64_t memory_limit_ = 0, state_bytes_ = 0;
  int64_t input_memory_ = 0;  // bytes of inputs that stream
  std::function<bool()> should_stop_;
  int64_t run_nanoseconds_ = 0;  // of the last whole run that could be stopped; 0: not known
  std::mutex mutex_;
  std::vector<Array> arrays_;  // by Plan::arrays; own copies where they are state
  std::vector<bool> natively_read_;
  std::vector<int> direct_output_;  // by value: the output in whose memory it is made, -1
  std::vector<bool> leaves_again_;  // by output, then by write: a later one needs the same value
  std::vector<Array> news_;         // by write: the new state until all of it has been read
  std::vector<std::vector<int>> drops_;
  std::vector<std::vector<size_t>> leaving_;  // by step: outputs that are given away behind it
  std::unique_ptr<Reference> reference_;
  std::unique_ptr<ReferenceRun> reference_run_;
  std::list<Entry> bindings_;  // the last used first
  std::vector<int64_t> key_;
  std::vector<void*> address_;  // by value: where blocks outside the arena lie in this run
  std::vector<int64_t> stamps_;
  std::unique_ptr<WeightStream> stream_;  // where there is a limit on memory, or inputs stream
  std::optional<UnnamedFile> file_;       // of a plan that offloads values
  Arena arena_;
  std::vector<int> stage_parts_, stage_first_;  // of the region that runs: see run_steps()
  RunWords words_;
};

}  // namespace lissome

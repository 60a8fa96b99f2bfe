// Runs a plan. Several threads may use one session: their runs take turns. Several sessions may share one plan, and so
// its weights, and run at once.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lissome/base.h"
#include "lissome/runtime/plan/plan.h"
#include "lissome/runtime/session/reference.h"

namespace lissome {

// Gets an output that leaves early; its memory is used again once the call returns. Called between steps, by the thread
// that runs the session.
using OutputTaker = std::function<void(size_t output, const TensorView& view)>;

struct SessionOptions {
  int threads = 0;         // 0: as many as the plan was made and measured with, at most all that this process may use
  int cached_shapes = 16;  // how many sets of input sizes stay bound; the longest unused one goes first
  // Bytes that weights, state and intermediate values may take together; 0: no limit. Weights beyond it come from the
  // mapped file with every call, which needs a plan without nodes that run in libtorch (unsupported else). over_budget
  // when not even intermediate values and the largest layer fit: told before anything is allocated for them.
  int64_t memory = 0;
  // Where the file lies that steps "offload" of a plan write to; its space is taken when sizes are first seen. Where it
  // is missing or full, and where a write or read fails, runs throw io and the session stays usable.
  std::string offload_folder;
};

struct MemoryFacts {
  int64_t weights = 0;    // bytes of the arrays that steps read, mapped or owned
  int64_t state = 0;      // bytes of the session's own copies
  int64_t arena = 0;      // bytes of intermediate values and scratch, of the largest shape so far
  int64_t reference = 0;  // bytes that libtorch prepacked for itself
};

// Of a session with a limit on memory, or whose inputs stream, as the last shape has it.
struct StreamFacts {
  int64_t weights = 0;          // bytes of all weights, whole pages
  int64_t streamed = 0;         // of these, what each call reads anew
  double bytes_per_second = 0;  // at which they come, measured; 0 when none do

  double seconds() const { return streamed > 0 ? static_cast<double>(streamed) / bytes_per_second : 0; }
};

// Thrown by a run that was stopped; see Session::stop_runs().
struct RunInterrupted : std::exception {
  const char* what() const noexcept override { return "the run was interrupted"; }
};

class Session {
 public:
  explicit Session(std::shared_ptr<const Plan> plan, const SessionOptions& options = {});
  // The plan of a .lissome file. Throws usage, invalid_input (broken file; no plan in it) and unsupported (nodes that
  // need libtorch where there is none).
  static Session load(const std::string& path, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  const Plan& plan() const;
  int threads() const;

  // Inputs in the plan's order, dense in row order. Outputs in the plan's order; one that is a literal number comes as
  // an array without dimensions, none as an array without storage. Throws invalid_input when an input does not fit or
  // an index in the data is out of range; the session stays usable. `sink` is told what each step took; `taker` gets
  // the outputs that leave early (PlanOutput::leaves_after), which come as arrays without storage.
  std::vector<Array> run(std::span<const TensorView> inputs, const StepSink* sink = nullptr,
                         const OutputTaker* taker = nullptr);
  // The same by name; invalid_input names what is missing or unknown. A single unnamed input matches a single input.
  std::vector<NamedArray> run(std::span<const NamedArray> inputs, const StepSink* sink = nullptr);
  // Into the caller's memory, one view per output, sizes as they will be; the place of an output that is none or leaves
  // early is left alone. Nothing is allocated once the shape is known and the plan has no reference steps.
  void run_into(std::span<const TensorView> inputs, std::span<const TensorView> outputs, const StepSink* sink = nullptr,
                const OutputTaker* taker = nullptr);
  // From the next run on these inputs, by their places in the plan, come from a file step by step, as constants do
  // under a limit on memory: each must lie in a shared mapping of one, on pages of its own, at every run until this is
  // called again (with none: they lie in memory). At most `bytes` of them are in memory during a run, none between
  // runs. A run whose largest step reads more throws over_budget. Throws unsupported where SessionOptions::memory is
  // set.
  void stream_inputs(std::span<const size_t> inputs, int64_t bytes);
  // From the next run on `should_stop` is polled between steps, several times a second: where it is true, the run
  // throws RunInterrupted. Outputs are then worth nothing, state is as before the run, and the session stays usable.
  // Empty: runs are not stopped.
  void stop_runs(std::function<bool()> should_stop);
  // Gives the memory of intermediate values back; the next run takes what its sizes need. For who goes on with smaller
  // inputs where a run did not fit.
  void release_memory();
  // Inputs by name brought into the plan's order.
  std::vector<TensorView> order_inputs(std::span<const NamedArray> inputs) const;

  MemoryFacts memory() const;
  StreamFacts stream() const;  // all 0 without a limit, and before sizes are known: by the first call, or fixed

 private:
  class Runner;
  std::unique_ptr<Runner> runner_;
};

}  // namespace lissome

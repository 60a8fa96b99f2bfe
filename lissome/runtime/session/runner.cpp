// See runner.h.
#include "lissome/runtime/session/runner.h"

#include <algorithm>
#include <utility>

#include "lissome/measure.h"
#include "lissome/runtime/plan/input_check.h"
#include "lissome/runtime/threads/thread_pool.h"

namespace lissome {
namespace {

// Ends the run of streamed weights however the session's run ends.
struct StreamedRun {
  WeightMemory& weights;
  ~StreamedRun() { weights.finish_run(); }
};

std::shared_ptr<const Plan> require_sound(std::shared_ptr<const Plan> plan) {
  check_plan(*plan);
  return plan;
}

}  // namespace

int choose_threads(const Plan& plan, int asked) {
  if (asked > 0) return asked;
  return plan.machine.threads > 0 ? std::min(plan.machine.threads, usable_threads()) : usable_cores();
}

Session::Runner::Runner(std::shared_ptr<const Plan> plan, const SessionOptions& options)
    : plan_(require_sound(std::move(plan))),
      native_(*plan_, choose_threads(*plan_, options.threads)),
      bindings_(options.cached_shapes),
      memory_(*plan_),
      weights_(*plan_, memory_, options.memory),
      file_(*plan_, options.offload_folder, weights_.has_limit()),
      held_(*plan_, memory_, native_.threads()),
      outputs_(*plan_, memory_, held_),
      state_(*plan_, memory_, held_),
      stop_(plan_->steps.size()) {
  const bool leaves_early = std::any_of(plan_->outputs.begin(), plan_->outputs.end(),
                                        [](const PlanOutput& output) { return output.leaves_after >= 0; });
  LISSOME_CHECK(!leaves_early || !weights_.has_limit(), "a limit on memory, and outputs that leave early");
  choose_executor();
  bind_fixed_sizes();
}

void Session::Runner::bind_fixed_sizes() {
  if (!plan_->dimensions.empty()) return;
  std::vector<TensorView> inputs;
  for (const PlanInput& input : plan_->inputs) {
    const PlanValue& value = plan_->value(input.value);
    Sizes sizes;
    for (const SizeExpression& size : value.sizes) {
      if (!size.constant()) return;
      sizes.push_back(*size.constant());
    }
    inputs.push_back({value.dtype, sizes, contiguous_strides(sizes), nullptr});
  }
  bind(inputs);
}

Binding& Session::Runner::bind(std::span<const TensorView> inputs) {
  Binding* known = bindings_.find(inputs);
  Binding& binding = known != nullptr ? *known : make_binding(inputs);
  memory_.place_arena(binding);
  return binding;
}

Binding& Session::Runner::make_binding(std::span<const TensorView> inputs) {
  auto binding = std::make_unique<Binding>(*plan_, match_inputs(*plan_, inputs), native_.threads());
  weights_.fit(*binding);
  file_.reserve(*binding);
  memory_.place_arrays(*binding);
  native_.place_words(*binding);
  return bindings_.add(inputs, std::move(binding));
}

std::vector<Array> Session::Runner::run(std::span<const TensorView> inputs, const RunListeners& listeners) {
  const std::lock_guard<std::mutex> lock(mutex_);
  held_.clear();
  Binding& binding = bind(inputs);
  std::vector<Array> outputs = outputs_.allocate(binding);
  execute(binding, inputs, listeners);
  outputs_.fetch(outputs, binding);
  state_.store(binding);
  held_.clear();
  return outputs;
}

void Session::Runner::run_into(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                               const RunListeners& listeners) {
  const std::lock_guard<std::mutex> lock(mutex_);
  held_.clear();
  Binding& binding = bind(inputs);
  outputs_.place(outputs, binding);
  execute(binding, inputs, listeners);
  outputs_.store(outputs, binding);
  state_.store(binding);
  held_.clear();
}

void Session::Runner::execute(Binding& binding, std::span<const TensorView> inputs, const RunListeners& listeners) {
  weights_.begin_run(inputs);
  const StreamedRun streamed{weights_};
  try {
    const int64_t before = stop_.is_set() ? now_nanoseconds() : 0;
    run_segments(binding, inputs, listeners);
    if (stop_.is_set()) stop_.note_run(now_nanoseconds() - before);
    check_mappings();
  } catch (const Error& error) {
    // The arena is given back, so that a smaller run may fit; bind() takes it anew.
    if (error.kind() == ErrorKind::over_budget) memory_.release_arena();
    throw;
  }
}

void Session::Runner::run_segments(Binding& binding, std::span<const TensorView> inputs,
                                   const RunListeners& listeners) {
  for (size_t i = 0; i < inputs.size(); ++i) memory_.place(binding, plan_->inputs[i].value, inputs[i].data);
  native_.begin_run();
  int done = 0;  // of the plan's steps; views are no part of segments
  for (const Segment& segment : binding.segments()) {
    const int first = binding.first_step(segment);
    finish_steps(binding, std::exchange(done, first), first, listeners.taker);
    run_segment(binding, segment, listeners.sink);
  }
  finish_steps(binding, done, static_cast<int>(plan_->steps.size()), listeners.taker);
}

void Session::Runner::run_segment(Binding& binding, const Segment& segment, const StepSink* sink) {
  switch (segment.kind) {
    case SegmentKind::native: run_native(binding, segment, sink); return native_.check_fault(binding, memory_);
    case SegmentKind::reference:
      if (weights_.streams()) weights_.advance(segment.first);
      stop_.poll();
      return held_.run_step(segment.first, binding, sink);
    case SegmentKind::transfer: return run_transfer(binding, static_cast<size_t>(segment.first), sink);
  }
}

// In one region, unless the run is polled or weights stream: then in several.
void Session::Runner::run_native(const Binding& binding, const Segment& segment, const StepSink* sink) {
  const std::span<const BoundStep> steps = binding.steps();
  for (int first = segment.first; first < segment.last;) {
    stop_.poll();
    const auto left = static_cast<size_t>(segment.last - first);
    int last = first + static_cast<int>(std::min(left, stop_.count_steps_between()));
    if (weights_.streams()) {
      const int there = weights_.advance(steps[static_cast<size_t>(first)].plan_step);
      const int most = std::exchange(last, first + 1);
      while (last < most && steps[static_cast<size_t>(last)].plan_step < there) ++last;
    }
    native_.run(binding, first, last, sink);
    first = last;
  }
}

void Session::Runner::run_transfer(const Binding& binding, size_t position, const StepSink* sink) {
  const int64_t before = sink ? now_nanoseconds() : 0;
  file_.move(binding, position, memory_);
  if (!sink) return;
  BoundStep moved;
  const Transfer& transfer = binding.transfers()[position];
  moved.plan_step = transfer.plan_step, moved.bytes = transfer.bytes;
  native_.report(*sink, moved, now_nanoseconds() - before);
}

// [first, last) of the plan have run: outputs that leave behind them are given away, and values that nobody needs any
// more go.
void Session::Runner::finish_steps(const Binding& binding, int first, int last, const OutputTaker* taker) {
  if (taker == nullptr && !held_.exist()) return;
  for (int step = first; step < last; ++step) {
    if (taker != nullptr) outputs_.give_behind(step, binding, *taker);
    if (held_.exist()) held_.drop_behind(step);
  }
}

void Session::Runner::stream_inputs(std::span<const size_t> inputs, int64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  weights_.stream_inputs(inputs, bytes);
  if (weights_.streams()) bindings_.for_each([&](const Binding& binding) { weights_.book_rows(binding); });
}

void Session::Runner::stop_runs(std::function<bool()> should_stop) {
  const std::lock_guard<std::mutex> lock(mutex_);
  stop_.set(std::move(should_stop));
}

void Session::Runner::release_memory() {
  const std::lock_guard lock(mutex_);
  memory_.release_arena();
}

StreamFacts Session::Runner::stream() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return weights_.facts();
}

MemoryFacts Session::Runner::memory() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const RunMemory::ArrayBytes arrays = memory_.count_arrays();
  return {.weights = arrays.weights,
          .state = arrays.state + state_.bytes(),
          .arena = memory_.arena_bytes(),
          .reference = held_.packed_bytes()};
}

}  // namespace lissome

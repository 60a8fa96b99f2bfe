// What a session may take, and takes: limits, weights and inputs that come from a file, and what is held.
#include <algorithm>

#include "lissome/runtime/session/runner.h"
#include "lissome/runtime/step/move/gather_steps.h"

namespace lissome {

// Before the arena is made: what it leaves of the limit is for weights. Null while no shape is known.
void Session::Runner::fit_memory(const Binding* binding) {
  const int64_t arena_bytes = std::max(binding ? binding->arena_bytes() : 0, arena_.bytes());
  const int64_t least = arena_bytes + state_bytes_ + stream_->least_bytes();
  if (memory_limit_ < least) {
    throw_error(ErrorKind::over_budget, "a limit of ", format_bytes(memory_limit_), " on memory: at least ", least,
                " bytes are needed: ", format_bytes(stream_->least_bytes()), " for the weights of the largest layer, ",
                format_bytes(arena_bytes), " for intermediate values, ", format_bytes(state_bytes_), " for state.");
  }
  if (binding) stream_->set_limit(memory_limit_ - arena_bytes - state_bytes_);
}

void Session::Runner::book_rows(const Binding& binding) {
  for (const BoundStep& step : binding.steps()) {
    const PlanStep& planned = plan_->steps[static_cast<size_t>(step.plan_step)];
    if (!is_step<GatherRowsStep>(planned)) continue;
    stream_->book_rows(step.plan_step, binding.value(read_step<GatherRowsStep>(planned).indices.value).elements());
  }
}

void Session::Runner::stream_inputs(std::span<const size_t> inputs, int64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (memory_limit_ > 0)
    throw_error(ErrorKind::unsupported, "a limit on memory, and inputs that come from a file step by step");
  stream_.reset();
  input_memory_ = bytes;
  if (inputs.empty()) return;
  stream_ = std::make_unique<WeightStream>(*plan_, inputs);
  for (const Entry& entry : bindings_) book_rows(*entry.binding);
}

void Session::Runner::fit_inputs(std::span<const TensorView> inputs) {
  stream_->follow(inputs);
  if (input_memory_ < stream_->least_bytes()) {
    throw_error(ErrorKind::over_budget, "weights in a file: a step reads ", format_bytes(stream_->least_bytes()),
                " of them at once, ", format_bytes(input_memory_), " may be in memory");
  }
  stream_->set_limit(input_memory_);
}

StreamFacts Session::Runner::stream() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stream_ ? stream_->facts() : StreamFacts{};
}

MemoryFacts Session::Runner::memory() {
  const std::lock_guard<std::mutex> lock(mutex_);
  MemoryFacts facts;
  std::vector<bool> counted(arrays_.size(), false);
  for (const PlanValue& value : plan_->values) {
    if (value.array < 0 || counted[static_cast<size_t>(value.array)]) continue;
    counted[static_cast<size_t>(value.array)] = true;
    const int64_t bytes = arrays_[static_cast<size_t>(value.array)].bytes();
    (value.storage == Storage::state ? facts.state : facts.weights) += bytes;
  }
  for (const Array& array : news_) facts.state += array.storage ? array.bytes() : 0;
  facts.arena = arena_.bytes();
  facts.reference = reference_ ? reference_->packed_bytes() : 0;
  return facts;
}

}  // namespace lissome

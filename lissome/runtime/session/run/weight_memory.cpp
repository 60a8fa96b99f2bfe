// See weight_memory.h.
#include "lissome/runtime/session/run/weight_memory.h"

#include <algorithm>

#include "lissome/runtime/step/move/gather_steps.h"

namespace lissome {

WeightMemory::WeightMemory(const Plan& plan, const RunMemory& memory, int64_t limit)
    : plan_(plan), memory_(memory), limit_(limit) {
  if (!has_limit()) return;
  if (plan.needs_reference()) {
    throw_error(ErrorKind::unsupported,
                "a limit on memory: some nodes of this model run in libtorch, which keeps all of ",
                "their weights.\n      lissome audit names them");
  }
  stream_ = std::make_unique<WeightStream>(plan, memory.arrays());
  check_limit(0);
}

void WeightMemory::check_limit(int64_t arena_bytes) const {
  const int64_t least = arena_bytes + memory_.state_bytes() + stream_->least_bytes();
  if (limit_ >= least) return;
  throw_error(ErrorKind::over_budget, "a limit of ", format_bytes(limit_), " on memory: at least ", least,
              " bytes are needed: ", format_bytes(stream_->least_bytes()), " for the weights of the largest layer, ",
              format_bytes(arena_bytes), " for intermediate values, ", format_bytes(memory_.state_bytes()),
              " for state.");
}

void WeightMemory::fit(const Binding& binding) {
  if (!streams()) return;
  book_rows(binding);
  if (!has_limit()) return;
  const int64_t arena_bytes = std::max(binding.arena_bytes(), memory_.arena_bytes());
  check_limit(arena_bytes);
  stream_->set_limit(limit_ - arena_bytes - memory_.state_bytes());
}

void WeightMemory::book_rows(const Binding& binding) {
  for (const BoundStep& step : binding.steps()) {
    const PlanStep& planned = plan_.steps[static_cast<size_t>(step.plan_step)];
    if (!is_step<GatherRowsStep>(planned)) continue;
    stream_->book_rows(step.plan_step, binding.value(read_step<GatherRowsStep>(planned).indices.value).elements());
  }
}

void WeightMemory::stream_inputs(std::span<const size_t> inputs, int64_t bytes) {
  if (has_limit())
    throw_error(ErrorKind::unsupported, "a limit on memory, and inputs that come from a file step by step");
  stream_.reset();
  input_bytes_ = bytes;
  if (!inputs.empty()) stream_ = std::make_unique<WeightStream>(plan_, inputs);
}

void WeightMemory::begin_run(std::span<const TensorView> inputs) {
  if (!streams() || has_limit()) return;
  stream_->follow(inputs);
  if (input_bytes_ < stream_->least_bytes()) {
    throw_error(ErrorKind::over_budget, "weights in a file: a step reads ", format_bytes(stream_->least_bytes()),
                " of them at once, ", format_bytes(input_bytes_), " may be in memory");
  }
  stream_->set_limit(input_bytes_);
}

}  // namespace lissome

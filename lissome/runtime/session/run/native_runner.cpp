// See native_runner.h.
#include "lissome/runtime/session/run/native_runner.h"

#include <algorithm>
#include <string>

#include "lissome/measure.h"
#include "lissome/runtime/threads/thread_pool.h"

namespace lissome {
namespace {

struct NativeRegion {
  const BoundStep* steps;
  Stages stages;
  int64_t* stamps;  // by stage, when timing
};

void run_native_part(void* argument, int stage, int part) {
  const auto& region = *static_cast<const NativeRegion*>(argument);
  const BoundStep* step = region.steps + region.stages.first_step(stage);
  const BoundStep* end = region.steps + region.stages.end_step(stage);
  for (; step < end; ++step) step->function(step->call.data(), part, step->parts);
}

void stamp_stage(void* argument, int stage) {
  static_cast<const NativeRegion*>(argument)->stamps[stage] = now_nanoseconds();
}

// "; input 'ids' holds 3 to 30522", for operands that are inputs, else for all inputs of integers: of other values the
// memory may be another's by now.
std::string describe_indices(const Plan& plan, const PlanStep& step, const Binding& binding, const RunMemory& memory) {
  std::string text;
  const auto is_operand = [&](const PlanInput& input) {
    return std::find(step.operands.begin(), step.operands.end(), input.value) != step.operands.end();
  };
  const bool any = std::any_of(plan.inputs.begin(), plan.inputs.end(), is_operand);
  for (const PlanInput& input : plan.inputs) {
    if (any && !is_operand(input)) continue;
    const TensorView view = memory.view_of(binding, input.value);
    const auto describe = [&](const auto* first) {
      const auto [least, most] = std::minmax_element(first, first + view.elements());
      text += "; input " + quote(input.name) + " holds " + std::to_string(*least) + " to " + std::to_string(*most);
    };
    if (view.elements() == 0) continue;
    if (view.dtype == Dtype::i64) describe(static_cast<const int64_t*>(view.data));
    if (view.dtype == Dtype::i32) describe(static_cast<const int32_t*>(view.data));
  }
  return text;
}

}  // namespace

void NativeRunner::run(const Binding& binding, int first, int last, const StepSink* sink) {
  const std::span<const BoundStep> steps = binding.steps();
  const Stages stages = binding.stages(first, last, sink != nullptr);
  const bool shared = *std::max_element(stages.parts.begin(), stages.parts.end()) > 1;
  if (sink) stamps_.assign(stages.parts.size(), 0);
  NativeRegion native = {steps.data(), stages, sink ? stamps_.data() : nullptr};
  int64_t before = sink ? now_nanoseconds() : 0;
  run_region(shared ? threads_ : 1, {stages.parts, run_native_part, sink ? stamp_stage : nullptr, &native});
  if (!sink) return;
  for (size_t i = 0; i < stamps_.size(); ++i) {
    report(*sink, steps[static_cast<size_t>(first) + i], stamps_[i] - before);
    before = stamps_[i];
  }
}

void NativeRunner::report(const StepSink& sink, const BoundStep& step, int64_t nanoseconds) const {
  const PlanStep& planned = plan_.steps[static_cast<size_t>(step.plan_step)];
  static const PlanOrigin nowhere;
  sink({step.plan_step, planned.origins.empty() ? &nowhere : &planned.origins.front(), planned.kernel,
        isa_name(step.isa), step.parts, nanoseconds, step.bytes, step.products, step.multiplied});
}

void NativeRunner::refuse_index(const Binding& binding, const RunMemory& memory) const {
  const PlanStep& step = plan_.steps[static_cast<size_t>(words_.fault - 1)];
  const PlanOrigin origin = step.origins.empty() ? PlanOrigin{} : step.origins.front();
  throw_error(ErrorKind::invalid_input, "an index in the data is out of range: ", origin.op, " (%", origin.node, ")",
              origin.source.empty() ? "" : " at ", origin.source, describe_indices(plan_, step, binding, memory));
}

}  // namespace lissome

// See node_meter.h.
#include "lissome/train/budget/facts/node_meter.h"

#include <algorithm>

#include "lissome/measure.h"
#include "lissome/runtime/step/move/offload_steps.h"
#include "lissome/train/budget/facts/lowered_step.h"
#include "lissome/train/budget/facts/thread_allocations.h"

namespace lissome {
namespace {

constexpr int kMeteredRuns = 5;  // for the medians, after one to warm up

TensorView view_metered(const at::Tensor& tensor) {
  return {dtype_of(tensor.scalar_type()), tensor.sizes().vec(), tensor.strides().vec(), tensor.data_ptr()};
}

class NodeMeter {
 public:
  NodeMeter(const StepSource& source, MemoryCounter& counter)
      : plan_(*source.plan),
        counter_(counter),
        times_(source.program->nodes.size()),
        rises_(source.program->nodes.size(), 0) {}

  void start_run() {
    live_ = counter_.live();
    counter_.reset_peak();
    for (std::vector<double>& times : times_) times.push_back(0);
    moving_.push_back(0);
  }

  void note(const StepTiming& timing) {
    const PlanStep& step = plan_.steps[static_cast<size_t>(timing.step)];
    const double seconds = static_cast<double>(timing.nanoseconds) * 1e-9;
    if (is_step<OffloadStep>(step) || is_step<ReloadStep>(step)) {
      moving_.back() += seconds;
      return;
    }
    const bool native = step.kernel != kReferenceStep;
    // A native step has one time for all nodes that it fuses; libtorch tells the time of each.
    const int node = native ? find_last_node(step) : timing.origin->program_node;
    if (node >= 0) {
      times_.at(static_cast<size_t>(node)).back() += seconds;  // summed over its steps
      int64_t& rise = rises_[static_cast<size_t>(node)];       // of a step of ours: copies of what libtorch holds
      rise = std::max(rise, counter_.peak() - live_);
    }
    live_ = counter_.live();
    counter_.reset_peak();
  }

  NodeCosts finish() const {
    NodeCosts costs{{}, rises_, summarize(moving_).median};
    for (const std::vector<double>& times : times_) costs.seconds.push_back(summarize(times).median);
    return costs;
  }

 private:
  const Plan& plan_;
  MemoryCounter& counter_;                  // of libtorch's memory
  std::vector<std::vector<double>> times_;  // by node, of each run
  std::vector<double> moving_;              // of each run
  std::vector<int64_t> rises_;
  int64_t live_ = 0;  // bytes before the node that runs now
};

}  // namespace

NodeCosts measure_nodes(const StepSource& source, const std::vector<at::Tensor>& inputs) {
  LISSOME_CHECK(inputs.size() == source.program->inputs.size());
  LISSOME_CHECK(source.plan->made_here, "the plan of a step was read from a file");
  Session session(std::make_shared<Plan>(*source.plan),
                  {.threads = source.threads, .offload_folder = source.offload_folder});
  std::vector<TensorView> views;
  for (const at::Tensor& input : inputs) views.push_back(view_metered(input));
  session.run(views);
  ThreadAllocations allocations;
  NodeMeter meter(source, allocations.counter());
  const StepSink sink = [&](const StepTiming& timing) { meter.note(timing); };
  for (int i = 0; i < kMeteredRuns; ++i) {
    meter.start_run();
    session.run(views, &sink);
  }
  return meter.finish();
}

}  // namespace lissome

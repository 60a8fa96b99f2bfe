#include "lissome/tune/variant.h"

#include <ATen/core/ivalue.h>
#include <c10/core/Allocator.h>

#include <algorithm>

namespace lissome {
namespace {

// Listens to libtorch's CPU allocator on this thread.
class AllocationMeter : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device) override {
    bytes > 0 ? counter_.add(bytes) : counter_.remove(-bytes);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t peak() const { return counter_.peak(); }

 private:
  MemoryCounter counter_;
};

}  // namespace

int64_t measure_libtorch_peak(const std::function<void()>& work) {
  const auto meter = std::make_shared<AllocationMeter>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
  work();
  return meter->peak();
}

std::unique_ptr<Variant> make_variant(std::string name, std::shared_ptr<const Program> program,
                                      const LowerOptions& lowering, const Bench& bench) {
  auto variant = std::make_unique<Variant>();
  variant->name = std::move(name);
  variant->program = std::move(program);
  variant->lowering = lowering;
  variant->lowering.inputs = to_ivalues(bench.inputs);
  variant->plan = std::make_shared<const Plan>(lower_program(*variant->program, variant->lowering));
  variant->session = std::make_unique<Session>(variant->plan, SessionOptions{.threads = lowering.threads});
  return variant;
}

int64_t measure_memory(Variant& variant, const Bench& bench) {
  // Uses its own session: the variant's session may have run at larger sizes, on the samples that judge quality.
  Session session(variant.plan, {.threads = variant.lowering.threads});
  session.run(bench.views);
  MemoryCounter& counter = allocator_memory();
  const int64_t before = counter.live();
  counter.reset_peak();
  const int64_t libtorch = measure_libtorch_peak([&] { session.run(bench.views); });
  const int64_t during = counter.peak() - before + libtorch;
  const MemoryFacts facts = session.memory();
  return facts.weights + facts.state + facts.arena + facts.reference + during;
}

int64_t count_file_bytes(const Variant& variant) {
  return count_model_file(pack_prepared(*variant.program, *variant.plan, FileContents::plan));
}

int64_t count_weight_bytes(const Variant& variant) { return variant.session->memory().weights; }

}  // namespace lissome

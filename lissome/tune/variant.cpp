#include "lissome/tune/variant.h"

#include <algorithm>

namespace lissome {

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
  MemoryCounter& counter = allocator_memory();
  const int64_t before = counter.live();
  counter.reset_peak();
  variant.session->run(bench.views);
  const int64_t during = counter.peak() - before;
  const MemoryFacts facts = variant.session->memory();
  return facts.weights + facts.state + facts.arena + facts.reference + during;
}

int64_t count_weight_bytes(const Variant& variant) { return variant.session->memory().weights; }

}  // namespace lissome

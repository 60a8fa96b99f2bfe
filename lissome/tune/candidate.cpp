#include "lissome/tune/candidate.h"

#include <algorithm>

namespace lissome {

std::unique_ptr<Candidate> make_candidate(std::string name, std::shared_ptr<const Program> program,
                                          const LowerOptions& lowering, const Bench& bench) {
  auto candidate = std::make_unique<Candidate>();
  candidate->name = std::move(name);
  candidate->program = std::move(program);
  candidate->lowering = lowering;
  candidate->lowering.inputs = to_ivalues(bench.inputs);
  candidate->plan = std::make_shared<const Plan>(lower_program(*candidate->program, candidate->lowering));
  candidate->session = std::make_unique<Session>(candidate->plan, SessionOptions{.threads = lowering.threads});
  return candidate;
}

int64_t measure_memory(Candidate& candidate, const Bench& bench) {
  MemoryCounter& counter = allocator_memory();
  const int64_t before = counter.live();
  counter.reset_peak();
  candidate.session->run(bench.views);
  const int64_t during = counter.peak() - before;
  const MemoryFacts facts = candidate.session->memory();
  return facts.weights + facts.state + facts.arena + facts.reference + during;
}

int64_t count_weight_bytes(const Candidate& candidate) { return candidate.session->memory().weights; }

}  // namespace lissome

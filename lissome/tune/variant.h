// One version of the model that can be run and measured.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lissome/lower.h"
#include "lissome/tune.h"

namespace lissome {

struct Variant {
  std::string name;
  std::shared_ptr<const Program> program;
  LowerOptions lowering;
  std::shared_ptr<const Plan> plan;
  std::unique_ptr<Session> session;
  std::optional<double> quality;
};

// What all candidates of a search share.
struct Bench {
  std::vector<NamedArray> inputs;  // one call, at the latency batch
  std::vector<TensorView> views;   // of the same
};

// Lowers and opens a session; throws what lowering throws.
std::unique_ptr<Variant> make_variant(std::string name, std::shared_ptr<const Program> program,
                                      const LowerOptions& lowering, const Bench& bench);

// Bytes held at the peak of one call: weights, state, arena, what libtorch prepacked and allocated.
int64_t measure_memory(Variant& variant, const Bench& bench);
// Bytes of the weights that the plan needs.
int64_t count_weight_bytes(const Variant& variant);

}  // namespace lissome

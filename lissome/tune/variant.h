// One version of the model, ready to be run and measured.
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

// The inputs that all variants of a search run on.
struct Bench {
  std::vector<NamedArray> inputs;                                        // of one call, at the batch for latency
  std::vector<TensorView> views;                                         // of these inputs
  std::function<std::vector<NamedArray>(int64_t samples)> take_samples;  // inputs of a call of another batch
};

// Lowers the program and opens a session. Throws the errors of lowering.
std::unique_ptr<Variant> make_variant(std::string name, std::shared_ptr<const Program> program,
                                      const LowerOptions& lowering, const Bench& bench);

// Bytes at the peak of one call: weights, state, arena, and memory that libtorch prepacked and allocated.
int64_t measure_memory(Variant& variant, const Bench& bench);
// Bytes of the weights that the plan needs.
int64_t count_weight_bytes(const Variant& variant);
// Bytes of the file with its plan and without the program, but for what the archive adds to each array.
int64_t count_file_bytes(const Variant& variant);

}  // namespace lissome

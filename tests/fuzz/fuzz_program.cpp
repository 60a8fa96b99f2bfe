// Program text from hostile files: through the reader of model files and its gate, then run. Weights are made from the
// text's own declarations, so that none is missing.
#include <map>

#include "lissome/program.h"
#include "lissome/program/syntax/program_text.h"
#include "lissome/program/text/parse_weights.h"
#include "tests/fuzz/filled_array.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guard_allocator.h"
#include "tests/fuzz/program/run_program.h"
#include "tests/fuzz/program/text_tree.h"

namespace {

using namespace lissome;

RunCounts counts("program");

// Arrays for the weights of this program and its bodies; false when one is too large. Tied weights share an array.
bool make_weights(const TextProgram& program, const std::string& scope, uint64_t data, ModelFile& file) {
  std::map<std::string, Array> made;
  for (const TextWeight& weight : program.weights) {
    const std::optional<Dtype> dtype = parse_dtype(weight.type.word);
    if (!dtype) continue;
    Sizes sizes;
    for (const std::string& size : weight.type.sizes) sizes.push_back(std::strtoll(size.c_str(), nullptr, 10));
    const std::optional<int64_t> bytes = count_bytes(*dtype, sizes);
    if (!bytes || *bytes > 1 << 17) return false;
    Array array = copy_guarded(make_filled({*dtype, sizes, data + file.weights.size() % 3}));
    const auto tied = made.find(weight.tied);
    if (tied != made.end() && tied->second.bytes() >= array.bytes()) array.storage = tied->second.storage;
    made[weight.name] = array;
    file.weights.push_back({scope + weight.name, array});
  }
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const std::vector<TextProgram>& bodies = program.nodes[i].bodies;
    for (size_t k = 0; k < bodies.size(); ++k)
      if (!make_weights(bodies[k], body_scope(scope, i, k), data, file)) return false;
  }
  return true;
}

void run_text(std::string_view text) {
  ModelFile file;
  file.program = text;
  const uint64_t data = read_data_number(text);
  if (!make_weights(read_program_text(text), "", data, file)) return counts.add_large();
  const Program program = unpack_program(file);
  if (!run_program(program, data)) return counts.add_large();
  counts.add_run();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  prepare_torch();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  counts.add_execution();
  reset_guard_budget();
  return keep_what_runs(counts, [&] { run_text(as_text(data, size)); });
}

// Exported programs (.pt2) from hostile files: through the reader and its gates, then through the passes and lowering,
// as `lissome prepare` makes a finished model of them. The plan is made, and not run: fuzz_plan does that.
#include <ATen/core/ivalue.h>

#include "lissome/lower.h"
#include "lissome/pass.h"
#include "lissome/program.h"
#include "tests/fuzz/program/graph_input.h"
#include "tests/fuzz/program/run_program.h"

namespace {

using namespace lissome;

RunCounts counts("prepare");

void prepare(const std::string& path) {
  const Program program = import_pt2(path);
  if (has_large_weights(program)) return counts.add_large();
  LowerOptions options;
  options.effort = Effort::fast;
  options.threads = 1;
  lower_program(prepare_inference(program), options);
  counts.add_run();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  prepare_torch();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return run_graph_input(counts, as_text(data, size), prepare);
}

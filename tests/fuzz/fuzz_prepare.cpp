// Exported programs (.pt2) from hostile files: through the reader and its gates, then through the passes and lowering,
// as `lissome prepare` makes a finished model of them. The plan is made, and not run: fuzz_plan does that.
#include <ATen/core/ivalue.h>

#include "lissome/lower.h"
#include "lissome/pass.h"
#include "lissome/program.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guard_allocator.h"
#include "tests/fuzz/program/graph_case.h"
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
  const std::string archive = make_graph_archive(as_text(data, size));
  if (archive.empty()) return -1;
  counts.add_execution();
  reset_guard_budget();
  const std::string path = write_input(reinterpret_cast<const uint8_t*>(archive.data()), archive.size(), ".pt2");
  return keep_what_runs(counts, [&] { prepare(path); });
}

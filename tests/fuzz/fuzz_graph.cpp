// Exported programs (.pt2) from hostile files: through the reader, its gate and the rewrite into pure form, then run.
#include "lissome/program.h"
#include "tests/fuzz/program/graph_input.h"
#include "tests/fuzz/program/run_program.h"

namespace {

using namespace lissome;

RunCounts counts("graph");

void run_graph(const std::string& path, uint64_t data) {
  const Program program = import_pt2(path);
  if (!run_program(program, data)) return counts.add_large();
  counts.add_run();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  prepare_torch();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = as_text(data, size);
  return run_graph_input(counts, text, [&](const std::string& path) { run_graph(path, read_graph_data(text)); });
}

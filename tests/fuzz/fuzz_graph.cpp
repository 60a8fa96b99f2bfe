// Exported programs (.pt2) from hostile files: through the reader, its gate and the rewrite into pure form, then run.
#include "lissome/program.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guard_allocator.h"
#include "tests/fuzz/program/graph_case.h"
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
  const std::string archive = make_graph_archive(as_text(data, size));
  if (archive.empty()) return -1;
  counts.add_execution();
  reset_guard_budget();
  const std::string path = write_input(reinterpret_cast<const uint8_t*>(archive.data()), archive.size(), ".pt2");
  return keep_what_runs(counts, [&] { run_graph(path, read_graph_data(as_text(data, size))); });
}

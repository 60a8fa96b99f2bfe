// What the targets do with a serialized graph before they differ.
#pragma once

#include <string>
#include <string_view>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guard_allocator.h"
#include "tests/fuzz/program/graph_case.h"

namespace lissome {

// Counts an execution and calls `run` with the path of the archive; what libFuzzer's entry returns.
template <typename Run>
int run_graph_input(RunCounts& counts, std::string_view text, const Run& run) {
  const std::string archive = make_graph_archive(text);
  if (archive.empty()) return -1;
  counts.add_execution();
  reset_guard_budget();
  const std::string path = write_input(reinterpret_cast<const uint8_t*>(archive.data()), archive.size(), ".pt2");
  return keep_what_runs(counts, [&] { run(path); });
}

}  // namespace lissome

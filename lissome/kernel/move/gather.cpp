// Bound by memory and by the indices: one portable form.
#include "lissome/kernel/move/gather.h"

#include <cstring>

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/move/kernel_versions.h"

namespace lissome {
namespace {

// Where the element lies in x; -1 when an index is out of range.
int64_t find_element(const GatherCall& call, const int64_t* place) {
  int64_t at = 0;
  for (int d = 0; d < call.rank; ++d) at += place[d] * call.x_strides[d];
  for (int i = 0; i < call.count; ++i) {
    int64_t where = 0;
    for (int d = 0; d < call.rank; ++d) where += place[d] * call.index_strides[i][d];
    int64_t index = call.narrow[i] ? static_cast<const int32_t*>(call.indices[i])[where]
                                   : static_cast<const int64_t*>(call.indices[i])[where];
    if (call.negative_allowed && index < 0) index += call.limits[i];
    if (index < 0 || index >= call.limits[i]) return -1;
    at += index * call.steps[i];
  }
  return at;
}

// How many of the last dimensions are one run of memory, and its length.
struct Run {
  int first;
  int64_t length;
};
Run find_run(const GatherCall& call) {
  Run run{call.rank, 1};
  while (run.first > 0) {
    const int d = run.first - 1;
    bool plain = call.x_strides[d] == run.length || call.sizes[d] == 1;
    for (int i = 0; i < call.count; ++i) plain = plain && (call.index_strides[i][d] == 0 || call.sizes[d] == 1);
    if (!plain) break;
    run.length *= call.sizes[d];
    --run.first;
  }
  return run;
}

}  // namespace

void gather_portable(const GatherCall& call, int part, int parts) {
  const Run run = find_run(call);
  int64_t outer = 1;
  for (int d = 0; d < run.first; ++d) outer *= call.sizes[d];
  const Range range = split_evenly(outer, part, parts);
  const auto bytes = static_cast<size_t>(run.length * call.item);
  if (bytes == 0) return;
  for (int64_t row = range.begin; row < range.end; ++row) {
    int64_t place[kGatherRank] = {};
    int64_t rest = row;
    for (int d = run.first - 1; d >= 0; --d) {
      place[d] = rest % call.sizes[d];
      rest /= call.sizes[d];
    }
    const int64_t at = find_element(call, place);
    char* y = static_cast<char*>(call.y) + row * static_cast<int64_t>(bytes);
    if (at < 0) {
      __atomic_store_n(call.fault, call.fault_code, __ATOMIC_RELAXED);
      std::memset(y, 0, bytes);
    } else {
      std::memcpy(y, static_cast<const char*>(call.x) + at * call.item, bytes);
    }
  }
}

}  // namespace lissome

// Bound by memory and by the indices: one portable form.
#include "lissome/kernel/move/gather.h"

#include <cstring>

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/move/kernel_versions.h"

namespace lissome {
namespace {

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

// Runs along dimension `dim`, the last one that is no part of a run; divisions are made once a line.
struct Line {
  int64_t x = 0, x_stride = 0;  // where the first run lies but for the indices, and from one run to the next
  int64_t index[kGatherIndices] = {}, index_stride[kGatherIndices] = {};

  Line(const GatherCall& call, int dim, int64_t place, int64_t first) {
    if (dim < 0) return;
    x_stride = call.x_strides[dim], x = first * x_stride;
    for (int i = 0; i < call.count; ++i) {
      index_stride[i] = call.index_strides[i][dim], index[i] = first * index_stride[i];
    }
    for (int d = dim - 1; d >= 0; --d) {
      const int64_t at = place % call.sizes[d];
      place /= call.sizes[d];
      x += at * call.x_strides[d];
      for (int i = 0; i < call.count; ++i) index[i] += at * call.index_strides[i][d];
    }
  }
};

// Adds where the run `j` of a line lies by index `i`; false when the index is out of range.
template <typename Index>
bool add_index(const GatherCall& call, const Line& line, int i, int64_t j, int64_t& at) {
  int64_t index = static_cast<const Index*>(call.indices[i])[line.index[i] + j * line.index_stride[i]];
  if (call.negative_allowed && index < 0) index += call.limits[i];
  if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(call.limits[i])) return false;
  at += index * call.steps[i];
  return true;
}

bool add_indices(const GatherCall& call, const Line& line, int64_t j, int64_t& at) {
  bool valid = true;
  for (int i = 0; i < call.count; ++i) {
    valid &= call.narrow[i] ? add_index<int32_t>(call, line, i, j, at) : add_index<int64_t>(call, line, i, j, at);
  }
  return valid;
}

// `count` runs of a line, of one item each; false when an index is out of range. `find(j, at)` adds what indices say.
template <typename Item, typename Find>
bool gather_items(const GatherCall& call, const Line& line, int64_t count, char* to, const Find& find) {
  const Item* x = static_cast<const Item*>(call.x);
  Item* y = reinterpret_cast<Item*>(to);
  bool all_valid = true;
  for (int64_t j = 0; j < count; ++j) {
    int64_t at = line.x + j * line.x_stride;
    const bool valid = find(j, at);
    y[j] = valid ? x[at] : Item{};
    all_valid &= valid;
  }
  return all_valid;
}

template <typename Find>
bool gather_line(const GatherCall& call, const Line& line, int64_t count, int64_t length, char* y, const Find& find) {
  if (length == 1) {
    switch (call.item) {
      case 1: return gather_items<uint8_t>(call, line, count, y, find);
      case 2: return gather_items<uint16_t>(call, line, count, y, find);
      case 4: return gather_items<uint32_t>(call, line, count, y, find);
      default: return gather_items<uint64_t>(call, line, count, y, find);
    }
  }
  const auto bytes = static_cast<size_t>(length * call.item);
  bool all_valid = true;
  for (int64_t j = 0; j < count; ++j, y += bytes) {
    int64_t at = line.x + j * line.x_stride;
    const bool valid = find(j, at);
    all_valid &= valid;
    if (valid) {
      std::memcpy(y, static_cast<const char*>(call.x) + at * call.item, bytes);
    } else {
      std::memset(y, 0, bytes);
    }
  }
  return all_valid;
}

}  // namespace

void gather_portable(const GatherCall& call, int part, int parts) {
  const Run run = find_run(call);
  const int dim = run.first - 1;
  const int64_t line_runs = dim < 0 ? 1 : call.sizes[dim];
  int64_t runs = line_runs;
  for (int d = 0; d < dim; ++d) runs *= call.sizes[d];
  if (runs == 0 || run.length == 0) return;
  const Range range = split_evenly(runs, part, parts);
  bool all_valid = true;
  for (int64_t at = range.begin; at < range.end;) {
    const int64_t first = at % line_runs, left = range.end - at;
    const int64_t count = line_runs - first < left ? line_runs - first : left;
    const Line line(call, dim, at / line_runs, first);
    char* y = static_cast<char*>(call.y) + at * run.length * call.item;
    const auto find_any = [&](int64_t j, int64_t& where) { return add_indices(call, line, j, where); };
    const auto find_one = [&](int64_t j, int64_t& where) { return add_index<int64_t>(call, line, 0, j, where); };
    all_valid &= call.count == 1 && !call.narrow[0] ? gather_line(call, line, count, run.length, y, find_one)
                                                    : gather_line(call, line, count, run.length, y, find_any);
    at += count;
  }
  if (!all_valid) __atomic_store_n(call.fault, call.fault_code, __ATOMIC_RELAXED);
}

}  // namespace lissome

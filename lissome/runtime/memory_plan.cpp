#include "lissome/runtime/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace lissome {
namespace {

constexpr int64_t kAlignment = 64;

int64_t aligned_size(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

bool meet_in_time(const PlannedBuffer& left, const PlannedBuffer& right) {
  return left.first_step <= right.last_step && right.first_step <= left.last_step;
}

// The offset of the tightest gap among `placed` (sorted by offset) that holds `bytes`.
int64_t find_gap(const std::vector<const PlannedBuffer*>& placed, int64_t bytes) {
  int64_t best = -1, best_slack = INT64_MAX, end = 0;
  for (const PlannedBuffer* buffer : placed) {
    const int64_t slack = buffer->offset - end - bytes;
    if (slack >= 0 && slack < best_slack) best = end, best_slack = slack;
    end = std::max(end, buffer->offset + aligned_size(buffer->bytes));
  }
  return best >= 0 ? best : end;
}

}  // namespace

int64_t plan_memory(std::vector<PlannedBuffer>& buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t left, size_t right) { return buffers[left].bytes > buffers[right].bytes; });
  int64_t total = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    PlannedBuffer& buffer = buffers[order[i]];
    std::vector<const PlannedBuffer*> placed;
    for (size_t j = 0; j < i; ++j) {
      if (meet_in_time(buffer, buffers[order[j]])) placed.push_back(&buffers[order[j]]);
    }
    std::sort(placed.begin(), placed.end(),
              [](const PlannedBuffer* left, const PlannedBuffer* right) { return left->offset < right->offset; });
    buffer.offset = find_gap(placed, aligned_size(buffer.bytes));
    total = std::max(total, buffer.offset + aligned_size(buffer.bytes));
  }
  return total;
}

}  // namespace lissome

// Every placement can be pushed down until each buffer rests on another one or on the floor, and be built in the order
// of offsets. So it is enough to try orders, each buffer going on top of what is highest during its life (a skyline).
#include "lissome/runtime/memory/search_memory.h"

#include <algorithm>

namespace lissome {
namespace {

constexpr int64_t kSearchTries = 10'000;

class Search {
 public:
  Search(const std::vector<PlannedBuffer>& buffers, int64_t limit)
      : buffers_(buffers), offsets_(buffers.size(), -1), best_{limit, {}, false} {
    int last = 0;
    for (const PlannedBuffer& buffer : buffers) last = std::max(last, buffer.last_step);
    skyline_.resize(static_cast<size_t>(last) + 1);
    waiting_.resize(skyline_.size());
    for (size_t i = 0; i < buffers.size(); ++i) {
      add(waiting_, buffers[i], buffers[i].bytes);
      if (buffers[i].bytes > 0) continue;
      offsets_[i] = 0;  // what is empty may lie anywhere
      ++placed_;
    }
  }

  MemorySearch run() {
    descend();
    best_.exhausted = tries_ < kSearchTries;
    return best_;
  }

 private:
  template <typename Change>
  void for_each_step(const PlannedBuffer& buffer, const Change& change) {
    for (int step = buffer.first_step; step <= buffer.last_step; ++step) change(static_cast<size_t>(step));
  }
  void add(std::vector<int64_t>& heights, const PlannedBuffer& buffer, int64_t bytes) {
    for_each_step(buffer, [&](size_t step) { heights[step] += bytes; });
  }

  // What is placed and what waits, stacked without a gap, must fit below the best so far.
  bool can_improve() const {
    for (size_t step = 0; step < skyline_.size(); ++step) {
      if (skyline_[step] + waiting_[step] >= best_.bytes) return false;
    }
    return true;
  }

  int64_t resting_offset(const PlannedBuffer& buffer) {
    int64_t offset = 0;
    for_each_step(buffer, [&](size_t step) { offset = std::max(offset, skyline_[step]); });
    return offset;
  }

  struct Choice {
    int64_t offset;
    size_t index;
  };

  // Buffers that could come next, lowest first. One that fits below every other one goes before it.
  std::vector<Choice> list_choices() {
    std::vector<Choice> choices;
    int64_t lowest_top = INT64_MAX;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (offsets_[i] >= 0) continue;
      choices.push_back({resting_offset(buffers_[i]), i});
      lowest_top = std::min(lowest_top, choices.back().offset + buffers_[i].bytes);
    }
    std::erase_if(choices, [&](const Choice& choice) { return choice.offset >= lowest_top; });
    std::stable_sort(choices.begin(), choices.end(), [&](const Choice& left, const Choice& right) {
      if (left.offset != right.offset) return left.offset < right.offset;
      return buffers_[left.index].bytes > buffers_[right.index].bytes;
    });
    return choices;
  }

  void descend() {
    if (tries_ >= kSearchTries || !can_improve()) return;
    ++tries_;
    if (placed_ == buffers_.size()) {
      best_.bytes = *std::max_element(skyline_.begin(), skyline_.end());
      best_.offsets = offsets_;
      return;
    }
    for (const Choice& choice : list_choices()) {
      const PlannedBuffer& buffer = buffers_[choice.index];
      std::vector<int64_t> before;
      for_each_step(buffer, [&](size_t step) {
        before.push_back(skyline_[step]);
        skyline_[step] = choice.offset + buffer.bytes;
        waiting_[step] -= buffer.bytes;
      });
      offsets_[choice.index] = choice.offset;
      ++placed_;
      descend();
      --placed_;
      offsets_[choice.index] = -1;
      size_t k = 0;
      for_each_step(buffer, [&](size_t step) { skyline_[step] = before[k++]; });
      add(waiting_, buffer, buffer.bytes);
    }
  }

  const std::vector<PlannedBuffer>& buffers_;
  std::vector<int64_t> offsets_;            // -1: waits
  std::vector<int64_t> skyline_, waiting_;  // by step: bytes placed, with the gaps below; bytes of those that wait
  size_t placed_ = 0;
  MemorySearch best_;
  int64_t tries_ = 0;
};

}  // namespace

MemorySearch search_memory(const std::vector<PlannedBuffer>& buffers, int64_t limit) {
  // Beyond this the recursion is deep and would not end anyway.
  constexpr size_t kMostBuffers = 40;
  if (buffers.size() > kMostBuffers) return {};
  return Search(buffers, limit).run();
}

}  // namespace lissome

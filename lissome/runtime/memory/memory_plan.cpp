#include "lissome/runtime/memory/memory_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "lissome/runtime/memory/search_memory.h"

namespace lissome {
namespace {

constexpr int64_t kBufferAlignment = 64;
constexpr int kAnnealingMoves = 1000;            // of one order: thirty milliseconds where it has 140 large buffers
constexpr int64_t kAnnealingWork = 300'000'000;  // pairs of buffers that one order may look at: less than a second
constexpr double kAnnealingHeat = 0.05;          // of the bound
// Buffers below this share of the bound are placed when the others are: they fill what is left over.
constexpr int64_t kSmallShare = 256;

bool meet_in_time(const PlannedBuffer& left, const PlannedBuffer& right) {
  return left.first_step <= right.last_step && right.first_step <= left.last_step;
}

// Buffers with sizes rounded up to the alignment, and what can be placed of them in some order.
class Placement {
 public:
  explicit Placement(std::vector<PlannedBuffer> buffers) : buffers_(std::move(buffers)) {
    for (PlannedBuffer& buffer : buffers_)
      buffer.bytes = (buffer.bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  }

  const std::vector<PlannedBuffer>& buffers() const { return buffers_; }

  // The most bytes alive at one step.
  int64_t largest_live() const {
    std::vector<int64_t> change;
    for (const PlannedBuffer& buffer : buffers_) {
      const auto end = static_cast<size_t>(buffer.last_step) + 2;
      if (change.size() < end) change.resize(end);
      change[static_cast<size_t>(buffer.first_step)] += buffer.bytes;
      change[end - 1] -= buffer.bytes;
    }
    int64_t live = 0, largest = 0;
    for (const int64_t step : change) largest = std::max(largest, live += step);
    return largest;
  }

  // Each in turn into the tightest gap between those it meets in time; the bytes that this takes in all.
  int64_t place(const std::vector<size_t>& order) {
    placed_.clear();
    int64_t total = 0;
    for (const size_t index : order) {
      PlannedBuffer& buffer = buffers_[index];
      buffer.offset = find_gap(buffer);
      total = std::max(total, buffer.offset + buffer.bytes);
      const auto above =
          std::upper_bound(placed_.begin(), placed_.end(), buffer.offset,
                           [&](int64_t offset, size_t other) { return offset < buffers_[other].offset; });
      placed_.insert(above, index);
    }
    return total;
  }

 private:
  int64_t find_gap(const PlannedBuffer& buffer) const {
    int64_t best = -1, best_slack = INT64_MAX, end = 0;
    for (const size_t index : placed_) {
      const PlannedBuffer& other = buffers_[index];
      if (!meet_in_time(buffer, other)) continue;
      const int64_t slack = other.offset - end - buffer.bytes;
      if (slack >= 0 && slack < best_slack) best = end, best_slack = slack;
      end = std::max(end, other.offset + other.bytes);
    }
    return best >= 0 ? best : end;
  }

  std::vector<PlannedBuffer> buffers_;
  std::vector<size_t> placed_;  // by offset
};

// Keeps the smallest arena found so far.
class Planner {
 public:
  explicit Planner(const std::vector<PlannedBuffer>& buffers)
      : placement_(buffers), least_(placement_.largest_live()), best_bytes_(INT64_MAX) {}

  PlannedArena plan() {
    list_orders();
    for (const std::vector<size_t>& order : orders_) {
      if (!done()) try_order(order);
    }
    for (const std::vector<size_t>& order : orders_) {
      if (!done()) anneal_order(order);
    }
    bool searched = false;
    if (!done()) searched = search();
    return {best_bytes_, least_, done() || searched};
  }

  const std::vector<PlannedBuffer>& best() const { return best_; }

 private:
  bool done() const { return best_bytes_ == least_; }

  void try_order(const std::vector<size_t>& order) {
    const int64_t bytes = placement_.place(order);
    if (bytes < best_bytes_) best_bytes_ = bytes, best_ = placement_.buffers();
  }

  template <typename Key>
  void add_sorted(const Key& key) {
    const auto& buffers = placement_.buffers();
    std::vector<size_t> order(buffers.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t left, size_t right) { return key(buffers[left]) > key(buffers[right]); });
    orders_.push_back(std::move(order));
  }

  void list_orders() {
    const auto length = [](const PlannedBuffer& buffer) { return int64_t{buffer.last_step} - buffer.first_step + 1; };
    add_sorted([](const PlannedBuffer& buffer) { return buffer.bytes; });
    add_sorted([&](const PlannedBuffer& buffer) {
      return static_cast<double>(buffer.bytes) * static_cast<double>(length(buffer));
    });
    add_sorted([&](const PlannedBuffer& buffer) { return length(buffer); });
    add_sorted([](const PlannedBuffer& buffer) { return -buffer.first_step; });
  }

  // What reaches the top was placed too late: it goes before any other, now and then two trade places, everything is
  // placed again, and at times the arena may grow (simulated annealing at one heat). Large buffers alone, then the
  // small ones among them.
  void anneal_order(const std::vector<size_t>& start) {
    std::vector<size_t> order = list_by_size(start, true), best = order;
    if (order.empty()) return;
    int64_t bytes = placement_.place(order), best_bytes = bytes;
    std::ptrdiff_t top = find_top(order, bytes);
    const double heat = kAnnealingHeat * static_cast<double>(least_);
    const auto count = static_cast<int64_t>(order.size());
    const int64_t moves = std::min<int64_t>(kAnnealingMoves, kAnnealingWork / (count * count));
    for (int64_t left = moves; left > 0 && best_bytes > least_; --left) {
      std::vector<size_t> changed = order;
      const auto place = static_cast<std::ptrdiff_t>(random_() % static_cast<size_t>(top + 1));
      std::rotate(changed.begin() + place, changed.begin() + top, changed.begin() + top + 1);
      if (random_() % 2 == 0) std::swap(changed[random_() % changed.size()], changed[random_() % changed.size()]);
      const int64_t reached = placement_.place(changed);
      const double chance = std::exp(static_cast<double>(bytes - reached) / heat);
      if (static_cast<double>(random_()) >= chance * static_cast<double>(std::mt19937::max())) continue;
      order = std::move(changed);
      bytes = reached;
      top = find_top(order, bytes);
      if (bytes < best_bytes) best_bytes = bytes, best = order;
    }
    if (best_bytes >= best_bytes_) return;
    const std::vector<size_t> small = list_by_size(orders_.front(), false);
    best.insert(best.end(), small.begin(), small.end());
    try_order(best);
  }

  // The place in `order`, as it was just placed, of what reaches the top.
  std::ptrdiff_t find_top(const std::vector<size_t>& order, int64_t bytes) const {
    const auto top = std::find_if(order.begin(), order.end(), [&](size_t index) {
      const PlannedBuffer& buffer = placement_.buffers()[index];
      return buffer.offset + buffer.bytes == bytes;
    });
    return top - order.begin();
  }

  // Those of `order` that are large, or small.
  std::vector<size_t> list_by_size(const std::vector<size_t>& order, bool large) const {
    std::vector<size_t> listed;
    for (const size_t index : order) {
      if ((placement_.buffers()[index].bytes >= least_ / kSmallShare) == large) listed.push_back(index);
    }
    return listed;
  }

  // True when what is kept afterwards is proved to be the least. Asking for the bound itself rules out most at once,
  // so that comes first.
  bool search() {
    if (keep(search_memory(placement_.buffers(), least_ + 1))) return true;
    const MemorySearch any = search_memory(placement_.buffers(), best_bytes_);
    keep(any);
    return any.exhausted;
  }

  bool keep(const MemorySearch& found) {
    if (found.offsets.empty()) return false;
    best_ = placement_.buffers();
    best_bytes_ = found.bytes;
    for (size_t i = 0; i < best_.size(); ++i) best_[i].offset = found.offsets[i];
    return true;
  }

  Placement placement_;
  std::mt19937 random_;
  int64_t least_, best_bytes_;
  std::vector<PlannedBuffer> best_;
  std::vector<std::vector<size_t>> orders_;
};

}  // namespace

PlannedArena plan_memory(std::vector<PlannedBuffer>& buffers) {
  if (buffers.empty()) return {0, 0, true};
  Planner planner(buffers);
  const PlannedArena arena = planner.plan();
  for (size_t i = 0; i < buffers.size(); ++i) buffers[i].offset = planner.best()[i].offset;
  return arena;
}

}  // namespace lissome

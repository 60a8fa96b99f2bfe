// How far the stages of a region are: which parts are claimed and which have ended, in atomics that outlive the region.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "lissome/runtime/team.h"

namespace lissome {

// Called between two looks at what is waited for. Whoever it comes from may wait for this very processor: after some
// spinning it is offered with each look, which costs little where nobody wants it.
void relax(int looks);

// One thread, the owner, opens regions one after another; helpers join in, or come too late. Nobody waits for a helper
// that holds no part, so a helper may still look at a region that has ended and whose successor runs: all that helpers
// read before a claim lies here, and every word bears the number of its region, so that a claim succeeds in the region
// that it is meant for alone.
class RegionProgress {
 public:
  // What the caller saw of a region.
  struct OwnerFacts {
    int64_t waited = 0;     // nanoseconds at the ends of stages, beyond short spinning
    double own_share = 1;   // of the parts of stages that more than one thread may run
  };

  // The owner: announces the region, ...
  void open(int threads, const Region& region);
  // ... works until all of it has ended.
  OwnerFacts work_as_owner(const Region& region);
  // A helper, 1 to threads - 1: joins the region that is open, if one is, and leaves when no part is left to claim.
  void work_as_helper(int thread);
  // How many threads the region that was opened last takes.
  int threads() const { return threads_.load(std::memory_order_relaxed); }

 private:
  // The number of the region that wrote it, and below that a count. A word of an earlier region counts as untouched.
  using Word = std::atomic<uint64_t>;
  // All words of a stage of few threads lie in one line of the cache.
  static constexpr size_t kLineWords = 8;
  struct alignas(64) Line {
    Word words[kLineWords] = {};
  };
  static size_t count_lines(int threads) { return (1 + static_cast<size_t>(threads) + kLineWords - 1) / kLineWords; }

  // A region as a thread found it.
  struct View {
    uint64_t number = 0;
    int threads = 0, stages = 0;
    size_t stride = 0;  // lines of a stage
    const std::atomic<int>* parts = nullptr;
    Line* lines = nullptr;
    void (*run)(void*, int, int) = nullptr;
    void* argument = nullptr;

    // The parts that thread `owner` of them is to take first: [begin(owner), begin(owner + 1)).
    int begin(int owner, int count) const { return static_cast<int>((int64_t{count} * owner + threads - 1) / threads); }
    // How many parts have ended, and how many of those of `owner` are left to claim.
    Word& ended(int stage) const { return word(stage, 0); }
    Word& left(int stage, int owner) const { return word(stage, 1 + static_cast<size_t>(owner)); }
    Word& word(int stage, size_t i) const {
      return lines[static_cast<size_t>(stage) * stride + i / kLineWords].words[i % kLineWords];
    }
  };

  // Nothing where the owner is about to open another.
  bool read(View* view) const;
  // How many of the parts this thread ran: of those that are `owner`'s to take first, and of all.
  int run_range(const View& view, int stage, int owner) const;
  int run_parts(const View& view, int stage, int thread) const;
  bool has_ended(const View& view, int stage) const;
  bool is_over(const View& view) const { return sequence_.load(std::memory_order_relaxed) != 2 * view.number; }
  // Nanoseconds that it took, short ones left out.
  int64_t wait_for_stage(const View& view, int stage) const;
  void reserve(size_t stages, size_t lines);

  // Twice the number of the region that is open; one more while the owner writes what follows.
  alignas(64) std::atomic<uint64_t> sequence_{0};
  std::atomic<int> threads_{0}, stages_{0};
  std::atomic<std::atomic<int>*> parts_{nullptr};
  std::atomic<Line*> lines_{nullptr};
  std::atomic<void (*)(void*, int, int)> run_{nullptr};
  std::atomic<void*> argument_{nullptr};
  alignas(64) std::atomic<int> stage_{0};  // that the owner has come to
  // Earlier arrays stay: a helper may still look at them.
  std::vector<std::unique_ptr<std::atomic<int>[]>> all_parts_;
  std::vector<std::unique_ptr<Line[]>> all_lines_;
  size_t parts_reserved_ = 0, lines_reserved_ = 0;
};

}  // namespace lissome

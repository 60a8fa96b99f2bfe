// How far the stages of a region are: which parts are claimed and which have ended, in atomics that outlive the region.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "lissome/runtime/threads/thread_pool.h"

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
    int64_t waited = 0;    // nanoseconds at the ends of stages, beyond short spinning
    double own_share = 1;  // of the parts of stages that more than one thread may run
  };

  // The owner: announces the region, and on which processor it runs itself; ...
  void open(int threads, const Region& region, int processor = -1);
  // ... works until all of it has ended.
  OwnerFacts work_as_owner(const Region& region);
  // A helper, 1 to threads - 1: joins the region that is open, if one is, and leaves when no part is left to claim.
  void work_as_helper(int thread);
  // Changes with every region that is opened.
  std::atomic<uint32_t>& sequence() { return sequence_; }
  int owner_processor() const { return processor_.load(std::memory_order_relaxed); }

 private:
  // The number of the region that wrote it, and below that a count. A word of an earlier region counts as untouched.
  using Word = std::atomic<uint64_t>;
  // What one thread writes stage after stage lies side by side, on lines of the cache that others seldom look at.
  static constexpr size_t kLineWords = 8;
  struct alignas(64) Line {
    Word words[kLineWords] = {};
  };
  static size_t count_lines(size_t stages) { return (stages + kLineWords - 1) / kLineWords; }

  // A region as a thread found it.
  struct View {
    uint64_t number = 0;
    uint32_t sequence = 0;
    int threads = 0, stages = 0;
    size_t stride = 0;  // lines of a row
    const std::atomic<int>* parts = nullptr;
    Line* lines = nullptr;
    void (*run)(void*, int, int) = nullptr;
    void* argument = nullptr;

    // The parts that thread `owner` of them is to take first: [begin(owner), begin(owner + 1)).
    int begin(int owner, int count) const { return static_cast<int>((int64_t{count} * owner + threads - 1) / threads); }
    // How many parts of those of `owner` are left to claim, and how many parts of all `thread` has ended.
    Word& left(int stage, int owner) const { return word(static_cast<size_t>(owner), static_cast<size_t>(stage)); }
    Word& ended(int stage, int thread) const {
      return word(static_cast<size_t>(threads + thread), static_cast<size_t>(stage));
    }
    Word& word(size_t row, size_t stage) const {
      return lines[row * stride + stage / kLineWords].words[stage % kLineWords];
    }
  };

  // Nothing where the owner is about to open another.
  bool read(View* view) const;
  // How many of the parts this thread ran: of those that are `owner`'s to take first, and of all.
  int run_range(const View& view, int stage, int owner, int thread) const;
  int run_parts(const View& view, int stage, int thread) const;
  bool has_ended(const View& view, int stage) const;
  bool is_over(const View& view) const { return sequence_.load(std::memory_order_relaxed) != view.sequence; }
  // Nanoseconds that it took, short ones left out.
  int64_t wait_for_stage(const View& view, int stage) const;
  void reserve(size_t stages, size_t lines);

  // All that a helper has to read to begin lies on one line of the cache. Odd while the owner writes what follows:
  alignas(64) std::atomic<uint32_t> sequence_{0};
  std::atomic<int> processor_{-1};
  std::atomic<uint64_t> number_{0};
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

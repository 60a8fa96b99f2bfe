// Weights that are larger than the memory they may take: those of some steps stay, those of the others come from the
// mapped file when their turn is near and go when it is over. Steps are cut into windows; while one computes, a thread
// of the stream reads the next. Which steps stay is spread evenly, so that reading and computing alternate.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "lissome/runtime/plan.h"
#include "lissome/runtime/session.h"

namespace lissome {

class WeightStream {
 public:
  // `arrays` by Plan::arrays. Those that do not lie in a mapped file stay in memory, whatever the limit.
  WeightStream(const Plan& plan, std::span<const Array> arrays);
  ~WeightStream();
  WeightStream(const WeightStream&) = delete;
  WeightStream& operator=(const WeightStream&) = delete;

  // Steps that read chosen rows of a table (the embeddings): their pages are not read ahead, only given back. Called
  // with the most rows that a run chooses, before set_limit.
  void book_rows(int step, int64_t rows);
  // What no limit can be below: what cannot stream, and the largest step.
  int64_t least_bytes() const;
  // Cuts windows for so many bytes of weights (at least least_bytes()), and measures how fast they come.
  void set_limit(int64_t bytes);

  // Plan steps [first, last) of each window; one for all of them when all fit.
  struct Window {
    int first = 0, last = 0;
    std::vector<std::span<const std::byte>> pages;   // read when the turn is near
    std::vector<std::span<const std::byte>> tables;  // read by the step itself, as far as it wants
    int64_t bytes = 0;                               // of both in memory, at most
  };
  const std::vector<Window>& windows() const { return windows_; }
  // In the order of windows, around every run: enter returns when the weights are there.
  void enter(size_t window);
  void leave(size_t window);

  const StreamFacts& facts() const { return facts_; }

 private:
  int64_t total_bytes() const;
  int64_t largest_step() const;
  void cut(int64_t most, int64_t kept);
  double measure_rate();
  void request(size_t window);
  void serve();

  struct Step {
    std::vector<std::span<const std::byte>> pages;  // what of the file its weights lie in
    int64_t bytes = 0;
    bool chooses_rows = false;
  };

  std::vector<Step> steps_;  // as the plan's
  int64_t fixed_bytes_ = 0, limit_ = -1;
  bool ahead_ = true;  // two windows fit at a time
  std::vector<Window> windows_;
  StreamFacts facts_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::ptrdiff_t wanted_ = -1;  // window to read
  std::ptrdiff_t there_ = -1;   // window that was read last
  bool stop_ = false;
  std::thread reader_;
};

}  // namespace lissome

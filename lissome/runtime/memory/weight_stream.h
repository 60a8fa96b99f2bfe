// Weights that are larger than the memory they may take: those of some steps stay, those of the others come from the
// mapped file when their turn is near and go when it is over. Steps are cut into windows; while one computes, a thread
// of the stream reads the next. Which steps stay is spread evenly, so that reading and computing alternate. Weights are
// constants of the plan, or inputs of it that training changes between runs: of these none stays.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "lissome/runtime/plan/plan.h"
#include "lissome/runtime/session/session.h"

namespace lissome {

class WeightStream {
 public:
  // The plan's constants; `arrays` by Plan::arrays. Those that do not lie in a mapped file stay in memory, whatever the
  // limit.
  WeightStream(const Plan& plan, std::span<const Array> arrays);
  // The plan's inputs at these places, which must lie in a shared mapping of a file whenever the plan runs: what is
  // written there is not lost when pages go. Between runs none of them is kept in memory.
  WeightStream(const Plan& plan, std::span<const size_t> inputs);
  ~WeightStream();
  WeightStream(const WeightStream&) = delete;
  WeightStream& operator=(const WeightStream&) = delete;

  // Of inputs, before each run, and before least_bytes(): all inputs of the run.
  void follow(std::span<const TensorView> inputs);
  // Steps that read chosen rows of a table (the embeddings): their pages are not read ahead, only given back. Called
  // with the most rows that a run chooses, before set_limit.
  void book_rows(int step, int64_t rows);
  // What no limit can be below: what cannot stream, and the largest step.
  int64_t least_bytes() const;
  // Cuts windows for so many bytes of weights (at least least_bytes()), and measures how fast they come.
  void set_limit(int64_t bytes);

  // For each step of a run, in their order, or for fewer: returns when its weights are there, and the step up to which
  // those of all others are there, too. Finish comes behind the last one, and where a run fails.
  int advance(int step);
  void finish();

  const StreamFacts& facts() const { return facts_; }

 private:
  using Pages = std::span<const std::byte>;
  struct Step {
    std::vector<PlanValueId> reads;
    std::vector<Pages> pages;  // what of the file its weights lie in
    int64_t bytes = 0;         // of them in memory
    int64_t rows = 0;          // of a table, booked
    bool chooses_rows = false;
  };
  // Plan steps [first, last); one window for all of them when all fit.
  struct Window {
    int first = 0, last = 0;
    std::vector<Pages> pages;    // read when the turn is near
    std::vector<Pages> leaving;  // of these, what the next window does not read
    std::vector<Pages> tables;   // read by the step itself, as far as it wants
    int64_t bytes = 0;           // of both in memory, at most
  };

  WeightStream(const Plan& plan, bool comes_again);
  void place_steps();
  int64_t total_bytes() const;
  int64_t largest_step() const;
  void cut(int64_t most, int64_t kept);
  double measure_rate();
  void enter(size_t window);
  void leave(size_t window);
  void request(size_t window);
  void settle();
  void serve();

  std::vector<Step> steps_;                // as the plan's
  std::vector<Pages> places_;              // by value; empty where it does not stream
  std::vector<size_t> inputs_;             // that stream
  std::vector<PlanValueId> input_values_;  // of these
  std::vector<const void*> lie_at_;        // where these lay last
  const bool comes_again_;                 // a run begins with what the last one ended with in memory
  int64_t fixed_bytes_ = 0, limit_ = -1;
  bool ahead_ = true;  // two windows fit at a time
  std::vector<Window> windows_;
  std::ptrdiff_t current_ = -1;  // window that a run is in
  StreamFacts facts_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::ptrdiff_t wanted_ = -1;  // window to read
  std::ptrdiff_t there_ = -1;   // window that was read last
  bool stop_ = false;
  std::thread reader_;
};

}  // namespace lissome

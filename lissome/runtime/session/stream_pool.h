// Throughput: several sessions over one plan, and so one set of weights, each with a share of the threads. One session
// with all threads answers a single call soonest; many callers are often served sooner by more sessions with fewer
// threads each, because threads that do not meet do not wait for each other.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "lissome/measure.h"
#include "lissome/runtime/session/session.h"

namespace lissome {

class StreamPool {
 public:
  // `streams` sessions with `threads` / `streams` threads each, at least one; `threads` as SessionOptions has them.
  // Throws usage for fewer than 1 stream or more than kMostStreams, and what Session throws.
  StreamPool(std::shared_ptr<const Plan> plan, int streams, const SessionOptions& options = {});

  // As Session::run, on whichever session is free; the caller waits where none is. From any number of threads.
  std::vector<Array> run(std::span<const TensorView> inputs);

  int streams() const { return static_cast<int>(sessions_.size()); }
  int threads_each() const { return sessions_.front()->threads(); }
  static constexpr int kMostStreams = 64;

 private:
  class Turn;

  int take();
  void give_back(int stream);

  // Of one stream, on a cache line of its own.
  struct alignas(64) Flag {
    std::atomic<bool> busy{false};
  };

  std::vector<std::unique_ptr<Session>> sessions_;
  std::array<Flag, kMostStreams> flags_;
  std::atomic<uint32_t> freed_{0};  // counts; what callers wait on who find no stream free
  std::atomic<int> waiting_{0};
};

struct StreamRate {
  int streams = 1, threads_each = 1;
  double calls_per_second = 0;  // median over the rounds
  Interval interval;            // of it, at 95 %
  Ratio speed;                  // against one stream
};

// Every number of streams in `counts` measured in turns, all callers busy, until `seconds` are over. `counts` begins
// with 1.
std::vector<StreamRate> measure_streams(const std::shared_ptr<const Plan>& plan, std::span<const TensorView> inputs,
                                        const std::vector<int>& counts, const SessionOptions& options, double seconds);
// 1, 2, 4, ... and `threads`.
std::vector<int> list_stream_counts(int threads);
// The fastest that is faster than one stream for sure; else one.
int choose_streams(const std::vector<StreamRate>& rates);

}  // namespace lissome

#include "lissome/runtime/session/stream_pool.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>

#include "lissome/runtime/session/runner.h"
#include "lissome/runtime/threads/thread_pool.h"

namespace lissome {
namespace {

// So many calls on each of the streams at once; the first failure of any is thrown when all have ended.
void run_calls(StreamPool& pool, std::span<const TensorView> inputs, int calls) {
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (int i = 0; i < calls; ++i) pool.run(inputs);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::thread> callers;
  for (int i = 1; i < pool.streams(); ++i) callers.emplace_back(work);
  work();
  for (std::thread& caller : callers) caller.join();
  if (failure) std::rethrow_exception(failure);
}

// How many calls make a round long beside starting its threads.
int count_calls(StreamPool& pool, std::span<const TensorView> inputs) {
  constexpr double kRoundSeconds = 0.03;
  run_calls(pool, inputs, 2);
  const Stopwatch watch;
  run_calls(pool, inputs, 1);
  return static_cast<int>(std::clamp(std::ceil(kRoundSeconds / watch.seconds()), 1.0, 10000.0));
}

}  // namespace

// A stream taken from the pool, given back at the end, whatever that is.
class StreamPool::Turn {
 public:
  explicit Turn(StreamPool& pool) : pool_(pool), stream_(pool.take()) {}
  ~Turn() { pool_.give_back(stream_); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  int stream() const { return stream_; }

 private:
  StreamPool& pool_;
  int stream_;
};

int StreamPool::take() {
  const auto try_all = [this] {
    // The first that is free: the memory of the last used is warm.
    for (int i = 0; i < streams(); ++i) {
      std::atomic<bool>& busy = flags_[static_cast<size_t>(i)].busy;
      if (!busy && !busy.exchange(true)) return i;
    }
    return -1;
  };
  int stream = try_all();
  if (stream >= 0) return stream;
  ++waiting_;
  while (true) {
    // What is given back after this look changes the count, so that no wait misses it.
    const uint32_t seen = freed_;
    stream = try_all();
    if (stream >= 0) break;
    freed_.wait(seen);
  }
  --waiting_;
  return stream;
}

void StreamPool::give_back(int stream) {
  flags_[static_cast<size_t>(stream)].busy = false;
  ++freed_;
  if (waiting_ > 0) freed_.notify_one();
}

StreamPool::StreamPool(std::shared_ptr<const Plan> plan, int streams, const SessionOptions& options) {
  if (streams < 1 || streams > kMostStreams)
    throw_error(ErrorKind::usage, streams, " streams: there can be 1 to ", kMostStreams);
  SessionOptions each = options;
  each.threads = std::max(1, choose_threads(*plan, options.threads) / streams);
  each.memory = options.memory / streams;
  for (int i = 0; i < streams; ++i) sessions_.push_back(std::make_unique<Session>(plan, each));
}

std::vector<Array> StreamPool::run(std::span<const TensorView> inputs) {
  const Turn turn(*this);
  const ThreadPoolScope pool(turn.stream());
  return sessions_[static_cast<size_t>(turn.stream())]->run(inputs);
}

std::vector<StreamRate> measure_streams(const std::shared_ptr<const Plan>& plan, std::span<const TensorView> inputs,
                                        const std::vector<int>& counts, const SessionOptions& options, double seconds) {
  std::vector<std::unique_ptr<StreamPool>> pools;
  std::vector<double> calls;  // of one round
  std::vector<Contender> contenders;
  for (const int count : counts) {
    pools.push_back(std::make_unique<StreamPool>(plan, count, options));
    StreamPool& pool = *pools.back();
    const int each = count_calls(pool, inputs);
    calls.push_back(static_cast<double>(each) * count);
    contenders.push_back({std::to_string(count), [&pool, inputs, each] { run_calls(pool, inputs, each); }});
  }
  InterleaveOptions interleave;
  interleave.warmup = 1;
  interleave.rounds = 1000;
  interleave.seconds = seconds;
  const Interleaved timing = compare_interleaved(contenders, interleave);
  const auto find_times = [&](size_t i) {
    std::vector<double> times;  // of one call
    for (const double round : timing.seconds[i]) times.push_back(round / calls[i]);
    return times;
  };
  const std::vector<double> one = find_times(0), second(one.size(), 1.0);
  std::vector<StreamRate> rates;
  for (size_t i = 0; i < counts.size(); ++i) {
    const std::vector<double> times = find_times(i);
    const Ratio call = estimate_ratio(times, second);
    rates.push_back({counts[i],
                     pools[i]->threads_each(),
                     1 / call.median,
                     {1 / call.interval.high, 1 / call.interval.low},
                     estimate_ratio(one, times)});
  }
  return rates;
}

std::vector<int> list_stream_counts(int threads) {
  std::vector<int> counts;
  for (int count = 1; count < threads && count < StreamPool::kMostStreams; count *= 2) counts.push_back(count);
  counts.push_back(std::clamp(threads, 1, StreamPool::kMostStreams));
  return counts;
}

int choose_streams(const std::vector<StreamRate>& rates) {
  const StreamRate* best = nullptr;
  for (const StreamRate& rate : rates) {
    if (rate.speed.above_one() && (!best || rate.calls_per_second > best->calls_per_second)) best = &rate;
  }
  return best ? best->streams : 1;
}

}  // namespace lissome

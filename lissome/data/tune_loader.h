// Chooses workers and prefetch while training goes on: every batch that it measures is a real step, none is lost.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lissome/data/loader.h"
#include "lissome/measure.h"

namespace lissome {

struct LoaderTunerOptions {
  int most_workers = 0;      // 0: as many as there are processors, at least 4: waiting for a disk needs none
  double least_gain = 0.03;  // a setting is kept that is faster by this share at least
  double seconds = 60;       // settles with the best so far after this long
};

// One stretch of steps with one setting.
struct LoaderTrial {
  int workers = 0, prefetch = 0;
  int64_t batches = 0;
  double seconds = 0;        // a step, loading and computing, in the mean
  double stall_seconds = 0;  // of it, what next() waited
};

struct LoaderTuning {
  int workers = 0, prefetch = 0;    // what the loader is left with
  std::vector<LoaderTrial> trials;  // in the order of time
  std::string summary;              // one sentence
};

// Begins with loading in the caller, then 1, 2, 4 ... workers, then a longer prefetch; at last half as many workers,
// which stay where they are as fast: they take processors from the steps. Each setting is timed between two stretches
// of the best so far, so that a machine that changes its pace decides nothing. Goes no further once nearly nothing is
// waited for, or two settings in a row were no faster.
class LoaderTuner {
 public:
  // `loader` outlives the tuner.
  explicit LoaderTuner(Loader& loader, LoaderTunerOptions options = {});

  // To be called after each step, until done(). What lies between two epochs is not counted.
  void observe();
  bool done() const { return done_; }
  const LoaderTuning& result() const { return tuning_; }

 private:
  enum class Phase : uint8_t { first, candidate, best_again };
  enum class Search : uint8_t { more_workers, longer_prefetch, fewer_workers };

  void begin(Phase phase, int workers, int prefetch);
  void finish();
  void judge();
  void propose();
  void settle();

  Loader& loader_;
  LoaderTunerOptions options_;
  LoaderTuning tuning_;
  Phase phase_ = Phase::first;
  Search search_ = Search::more_workers;
  LoaderTrial trial_;             // that runs
  LoaderTrial best_, candidate_;  // as last timed
  double speedup_ = 1;  // of the best over loading in the caller, each step of it timed against its neighbours
  int settings_ = 0;    // that were timed
  int failures_ = 0;    // settings in a row that were no faster
  int warm_up_ = 0;     // steps that are not counted yet
  bool done_ = false;
  int64_t epoch_ = 0;
  int64_t last_nanoseconds_ = 0;
  double last_stall_ = 0;
  Stopwatch watch_;
};

// Trains with `step` until the tuner is done.
LoaderTuning tune_loader(Loader& loader, const std::function<void(Batch&)>& step, LoaderTunerOptions options = {});

}  // namespace lissome

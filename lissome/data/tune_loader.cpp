// See tune_loader.h.
#include "lissome/data/tune_loader.h"

#include <algorithm>
#include <cstdio>

namespace lissome {
namespace {

// A setting is measured over as many steps and as long as both say, but for quick steps.
constexpr int64_t kLeastSteps = 8, kEnoughSteps = 400;
constexpr double kLeastSeconds = 0.25;
constexpr double kHardlyWaits = 0.02;  // share of a step
constexpr int kFirstPrefetch = 2, kMostPrefetch = 8;
constexpr int kMostFailures = 2;

std::string describe_trial(const LoaderTrial& trial) {
  if (trial.workers == 0) return "in the training loop";
  return "by " + std::to_string(trial.workers) + (trial.workers == 1 ? " worker, " : " workers, ") +
         std::to_string(trial.prefetch) + " batches ahead each";
}

}  // namespace

LoaderTuner::LoaderTuner(Loader& loader, LoaderTunerOptions options) : loader_(loader), options_(options) {
  if (options_.most_workers == 0) options_.most_workers = std::max(4, usable_threads());
  tuning_.prefetch = kFirstPrefetch;
  begin(Phase::first, 0, kFirstPrefetch);
}

void LoaderTuner::begin(Phase phase, int workers, int prefetch) {
  phase_ = phase;
  loader_.set_workers(workers, prefetch);
  trial_ = {workers, prefetch};
  // The queue starts empty, and while it fills, loading ahead looks like work for nothing.
  warm_up_ = workers * (prefetch + 1) + 1;
  epoch_ = loader_.position().epoch;
  last_nanoseconds_ = now_nanoseconds();
  last_stall_ = loader_.statistics().stall_seconds;
}

void LoaderTuner::observe() {
  if (done_) return;
  const int64_t now = now_nanoseconds();
  const double stall = loader_.statistics().stall_seconds;
  const bool counts = loader_.position().epoch == epoch_ && warm_up_-- <= 0;
  if (counts) {
    ++trial_.batches;
    trial_.seconds += static_cast<double>(now - last_nanoseconds_) * 1e-9;
    trial_.stall_seconds += stall - last_stall_;
  }
  epoch_ = loader_.position().epoch;
  last_nanoseconds_ = now;
  last_stall_ = stall;
  // Batches of several workers come in bursts: only whole rounds are fair.
  const bool whole_rounds = trial_.batches % std::max(1, trial_.workers) == 0;
  const bool long_enough = trial_.seconds >= kLeastSeconds || trial_.batches >= kEnoughSteps;
  if (trial_.batches >= kLeastSteps && long_enough && whole_rounds) finish();
  if (!done_ && watch_.seconds() > options_.seconds) settle();
}

void LoaderTuner::finish() {
  trial_.seconds /= static_cast<double>(trial_.batches);
  trial_.stall_seconds /= static_cast<double>(trial_.batches);
  tuning_.trials.push_back(trial_);
  switch (phase_) {
    case Phase::first:
      best_ = trial_;
      settings_ = 1;
      return propose();
    case Phase::candidate:
      candidate_ = trial_;
      ++settings_;
      return begin(Phase::best_again, best_.workers, best_.prefetch);
    case Phase::best_again: return judge();
  }
}

void LoaderTuner::judge() {
  const double around = (best_.seconds + trial_.seconds) / 2;
  const double gain = search_ == Search::fewer_workers ? 0 : options_.least_gain;
  const bool better = candidate_.seconds <= around * (1 - gain);
  best_ = better ? candidate_ : trial_;
  if (better) speedup_ *= around / candidate_.seconds;
  failures_ = better ? 0 : failures_ + 1;
  propose();
}

// The next setting, if one is worth a try.
void LoaderTuner::propose() {
  tuning_.workers = best_.workers;
  tuning_.prefetch = best_.prefetch;
  const bool waits = best_.stall_seconds >= kHardlyWaits * best_.seconds;
  if (search_ == Search::more_workers && waits) {
    const int workers = settings_ == 1 ? 1 : candidate_.workers * 2;
    if (workers <= options_.most_workers && failures_ < kMostFailures)
      return begin(Phase::candidate, workers, kFirstPrefetch);
    search_ = Search::longer_prefetch;
    if (best_.workers > 0) return begin(Phase::candidate, best_.workers, 2 * kFirstPrefetch);
  }
  if (search_ == Search::longer_prefetch && waits && failures_ == 0 && candidate_.prefetch < kMostPrefetch)
    return begin(Phase::candidate, candidate_.workers, 2 * candidate_.prefetch);
  if (search_ != Search::fewer_workers) search_ = Search::fewer_workers, failures_ = 0;
  if (failures_ == 0 && best_.workers > 1) return begin(Phase::candidate, best_.workers / 2, best_.prefetch);
  settle();
}

void LoaderTuner::settle() {
  done_ = true;
  if (settings_ == 0) {
    tuning_.summary =
        "loading was not measured, because there were too few steps in " + format_duration(options_.seconds);
  } else {
    tuning_.summary = "data is loaded " + describe_trial(best_);
    if (best_.workers > 0) {
      char times[32];
      std::snprintf(times, sizeof times, "%.2f", speedup_);
      tuning_.summary += std::string(", ") + times + " times as fast as in the training loop";
    }
    tuning_.summary +=
        "; " + std::to_string(settings_) + (settings_ == 1 ? " setting was" : " settings were") + " tried";
  }
  const LoaderOptions& now = loader_.options();
  if (now.workers != tuning_.workers || now.prefetch != tuning_.prefetch)
    loader_.set_workers(tuning_.workers, tuning_.prefetch);
}

LoaderTuning tune_loader(Loader& loader, const std::function<void(Batch&)>& step, LoaderTunerOptions options) {
  LoaderTuner tuner(loader, options);
  Batch batch;
  while (!tuner.done()) {
    if (!loader.next(batch)) continue;
    step(batch);
    tuner.observe();
  }
  return tuner.result();
}

}  // namespace lissome

// Batches in the order of the sampler, loaded ahead by threads while the caller computes. What comes out does not
// depend on how many threads there are, or on where one began: epoch and batch name everything.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lissome/data/batch_source.h"
#include "lissome/data/sampler.h"
#include "lissome/data/transform.h"

namespace lissome {

// What happens when a sample cannot be had or holds NaN.
enum class BadSamples : uint8_t {
  fatal,  // next() throws and names it
  skip    // its batch goes without it; statistics() names it
};

struct LoaderOptions {
  int workers = 0;   // threads that load ahead; 0: next() loads in the caller
  int prefetch = 2;  // batches that each worker loads ahead
  BadSamples bad_samples = BadSamples::fatal;
  bool check_finite = true;  // of float inputs and labels, before they are transformed
  int64_t cache_bytes = 0;   // samples kept as the source gave them; see cache_source
};

// The batch that comes next. `batch` may be one past the last: then next() ends the epoch first.
struct LoaderPosition {
  int64_t epoch = 0;
  int64_t batch = 0;
};

struct BadSample {
  int64_t sample = 0;
  std::string reason;
};

// Since the loader was made, or since reset_statistics().
struct LoaderStatistics {
  int64_t batches = 0, samples = 0;
  double stall_seconds = 0;            // that next() waited for a batch, or loaded it itself
  double load_seconds = 0;             // that loading the delivered batches took, wherever
  int64_t skipped = 0;                 // bad samples that were left out
  std::vector<BadSample> bad_samples;  // the first 100 different ones
};

class Loader {
 public:
  // Throws invalid_input (an empty source) and usage (options out of range). `transforms` must fit the source's images.
  Loader(std::shared_ptr<const BatchSource> source, SamplerOptions sampler, TransformPipeline transforms = {},
         LoaderOptions options = {});
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch; false, once, at the end of each epoch, and then the next epoch goes on. What `batch` held is used
  // again for later ones unless somebody else still holds it. Throws what the source threw, with the sample's name;
  // then position() is still that batch.
  bool next(Batch& batch);
  LoaderPosition position() const;
  // Goes on from there, forwards or backwards. Throws usage for a place that no epoch has.
  void restore(const LoaderPosition& position);
  int64_t batches() const;             // of every epoch
  int64_t count(int64_t index) const;  // samples of a batch of every epoch, bad ones counted; see Sampler::count()

  // Takes hold at once; no batch is lost or comes twice. Throws usage when out of range.
  void set_workers(int workers, int prefetch);
  const LoaderOptions& options() const;
  LoaderStatistics statistics() const;
  void reset_statistics();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace lissome

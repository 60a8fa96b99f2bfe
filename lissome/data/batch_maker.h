// One batch from start to end: taken from the source, checked, transformed; bad samples found and named.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lissome/data/loader.h"

namespace lissome {

// Thread-safe: what changes is in the work and the batch that the caller passes.
class BatchMaker {
 public:
  BatchMaker(std::shared_ptr<const BatchSource> source, TransformPipeline transforms, const LoaderOptions& options);

  struct Made {
    Batch batch;                 // without the bad samples; count() may be 0
    std::vector<BadSample> bad;  // with BadSamples::skip
    double seconds = 0;
  };
  // `made` and `raw` may hold what an earlier call left; their memory is used again. `raw` is scratch.
  void make(std::span<const int64_t> samples, int64_t epoch, Made& made, Batch& raw) const;

 private:
  void take(std::span<const int64_t> samples, Batch& batch) const;
  void take_good(std::span<const int64_t> samples, Batch& batch, std::vector<BadSample>& bad) const;
  void transform(int64_t epoch, Batch& raw, Batch& batch) const;
  size_t find_images(const Batch& raw) const;

  std::shared_ptr<const BatchSource> source_;
  TransformPipeline transforms_;
  BadSamples bad_samples_;
  bool check_finite_;
};

}  // namespace lissome

// See gradient_buckets.h.
#include "lissome/train/loop/learn/gradient_buckets.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

#include "lissome/measure.h"
#include "lissome/program.h"

namespace lissome {

GradientBuckets::GradientBuckets(Group& group, Dtype dtype, at::Tensor flat, std::vector<int64_t> bytes)
    : group_(group), dtype_(dtype), flat_(std::move(flat)), bytes_(std::move(bytes)), bucket_of_(bytes_.size()) {
  cut({bytes_.size()});
}

void GradientBuckets::cut(const BucketEnds& ends) {
  LISSOME_CHECK(is_cut(ends, bytes_.size()), "a cut into ", ends.size(), " buckets of ", bytes_.size(), " gradients");
  ends_ = ends;
  buckets_.clear();
  size_t position = 0;
  int64_t first = 0;
  for (const size_t end : ends) {
    int64_t elements = 0;
    for (; position < end; ++position) {
      elements += bytes_[position] / static_cast<int64_t>(sizeof(float));
      bucket_of_[position] = buckets_.size();
    }
    buckets_.push_back(
        {.end = end, .missing = 0, .part = flat_.narrow(0, first, elements), .travelling = {}, .wait = {}});
    first += elements;
  }
}

void GradientBuckets::begin(const std::string& what) {
  what_ = what;
  next_ = 0;
  size_t position = 0;
  for (Bucket& bucket : buckets_) {
    bucket.missing = bucket.end - position;
    position = bucket.end;
  }
}

void GradientBuckets::complete(size_t position) {
  size_t& missing = buckets_[bucket_of_[position]].missing;
  LISSOME_CHECK(missing > 0, "gradient ", position, " was complete before");
  --missing;
  while (next_ < buckets_.size() && buckets_[next_].missing == 0) start_next();
}

void GradientBuckets::start_next() {
  Bucket& bucket = buckets_[next_++];
  bucket.travelling = dtype_ == Dtype::f32 ? bucket.part : bucket.part.to(scalar_type_of(dtype_));
  bucket.wait = group_.start_sum(bucket.travelling, what_);
}

void GradientBuckets::finish() {
  while (next_ < buckets_.size()) start_next();
  for (Bucket& bucket : buckets_) {
    bucket.wait();
    bucket.wait = {};
    if (dtype_ != Dtype::f32) bucket.part.copy_(bucket.travelling);
    bucket.travelling = at::Tensor();
  }
}

LinkCost measure_link(Group& group, Dtype dtype) {
  constexpr int64_t kSmall = int64_t{16} << 10, kLarge = int64_t{2} << 20;  // bytes
  constexpr int kRuns = 5;
  const std::string what = "measuring the link";
  const at::ScalarType type = scalar_type_of(dtype);
  const auto measure = [&](int64_t bytes) {
    double least = std::numeric_limits<double>::infinity();
    const at::Tensor tensor = at::zeros({bytes / static_cast<int64_t>(sizeof(float))}, type);
    const at::Tensor mark = at::zeros({1}, type);
    for (int run = 0; run < kRuns; ++run) {
      group.sum(mark, what);  // all ranks begin together
      const Stopwatch watch;
      group.sum(tensor, what);
      least = std::min(least, watch.seconds());
    }
    return least;
  };
  const double small = measure(kSmall), large = measure(kLarge);
  const double per_byte = std::max(large - small, 0.0) / static_cast<double>(kLarge - kSmall);
  return {.start = std::max(small - per_byte * static_cast<double>(kSmall), 0.0), .per_byte = per_byte};
}

}  // namespace lissome

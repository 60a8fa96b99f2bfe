// Sums gradients over the ranks of a group while the step goes on: each bucket as soon as its gradients are complete,
// in the same order on every rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "lissome/base.h"
#include "lissome/distributed.h"
#include "lissome/train/loop/learn/bucket_cuts.h"

namespace lissome {

class GradientBuckets {
 public:
  // `flat`: f32, the gradients of all parameters in the order of buckets. `bytes`: of each in that order. Sums travel
  // in `dtype`. `group` must outlive this.
  GradientBuckets(Group& group, Dtype dtype, at::Tensor flat, std::vector<int64_t> bytes);

  // Cuts anew, between steps. `ends` must cut all gradients.
  void cut(const BucketEnds& ends);
  const BucketEnds& ends() const { return ends_; }
  const std::vector<int64_t>& bytes() const { return bytes_; }

  // Begins a step, in which every gradient is missing. Errors name `what`.
  void begin(const std::string& what);
  // The gradient at `position` of the order stands in `flat`. Starts the sums of buckets that it completes.
  void complete(size_t position);
  // Starts what was not started, and waits until all of `flat` is summed. Throws the errors of Group::sum().
  void finish();

 private:
  struct Bucket {
    size_t end = 0;         // of its gradients, by position
    size_t missing = 0;     // gradients
    at::Tensor part;        // of flat_
    at::Tensor travelling;  // the part itself, or a copy in dtype_
    std::function<void()> wait;
  };
  void start_next();

  Group& group_;
  const Dtype dtype_;
  const at::Tensor flat_;
  const std::vector<int64_t> bytes_;
  BucketEnds ends_;
  std::vector<Bucket> buckets_;
  std::vector<size_t> bucket_of_;  // by position
  size_t next_ = 0;                // bucket to start
  std::string what_;
};

// Seconds to sum bytes of f32 gradients that travel in `dtype`, measured with all ranks, which call it at once.
LinkCost measure_link(Group& group, Dtype dtype);

}  // namespace lissome

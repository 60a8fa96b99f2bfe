// Where gradients, in the order in which a step completes them, are cut into buckets that are summed at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lissome {

// A bucket holds the gradients from the end of the one before to its own end.
using BucketEnds = std::vector<size_t>;

// Seconds to sum so many bytes over the ranks: start + bytes * per_byte.
struct LinkCost {
  double start = 0, per_byte = 0;
};

// Buckets end with the gradient that brings them to `most` bytes, the first to `first`. `bytes`: of each gradient.
BucketEnds cut_by_size(std::span<const int64_t> bytes, int64_t first, int64_t most);

// The cut whose last sum ends first, when sums follow one another and each begins when its gradients are complete.
// `ready`: seconds since the step began, of each gradient.
BucketEnds cut_by_time(std::span<const int64_t> bytes, std::span<const double> ready, const LinkCost& cost);

// When the last sum of a cut ends.
double predict_end(std::span<const int64_t> bytes, std::span<const double> ready, const LinkCost& cost,
                   const BucketEnds& ends);

// Whether the ends of a file or of another rank cut so many gradients.
bool is_cut(const BucketEnds& ends, size_t gradients);

}  // namespace lissome

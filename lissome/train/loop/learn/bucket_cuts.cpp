// See bucket_cuts.h.
#include "lissome/train/loop/learn/bucket_cuts.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace lissome {

BucketEnds cut_by_size(std::span<const int64_t> bytes, int64_t first, int64_t most) {
  BucketEnds ends;
  int64_t filled = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    filled += bytes[i];
    if (i + 1 < bytes.size() && filled < (ends.empty() ? first : most)) continue;
    ends.push_back(i + 1);
    filled = 0;
  }
  return ends;
}

// A dynamic programme over the gradients: of all cuts of the first `end`, the one that ends first is best for what
// follows too.
BucketEnds cut_by_time(std::span<const int64_t> bytes, std::span<const double> ready, const LinkCost& cost) {
  const size_t count = bytes.size();
  std::vector<double> done(count + 1, std::numeric_limits<double>::infinity());
  std::vector<size_t> from(count + 1, 0);
  done[0] = 0;
  for (size_t end = 1; end <= count; ++end) {
    int64_t filled = 0;
    double complete = 0;
    for (size_t begin = end; begin-- > 0;) {
      filled += bytes[begin];
      complete = std::max(complete, ready[begin]);
      const double ends = std::max(done[begin], complete) + cost.start + static_cast<double>(filled) * cost.per_byte;
      if (ends < done[end]) done[end] = ends, from[end] = begin;
    }
  }
  BucketEnds ends;
  for (size_t end = count; end > 0; end = from[end]) ends.insert(ends.begin(), end);
  return ends;
}

double predict_end(std::span<const int64_t> bytes, std::span<const double> ready, const LinkCost& cost,
                   const BucketEnds& ends) {
  double done = 0;
  size_t begin = 0;
  for (const size_t end : ends) {
    const auto filled = std::accumulate(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                                        bytes.begin() + static_cast<std::ptrdiff_t>(end), int64_t{0});
    for (; begin < end; ++begin) done = std::max(done, ready[begin]);
    done += cost.start + static_cast<double>(filled) * cost.per_byte;
  }
  return done;
}

bool is_cut(const BucketEnds& ends, size_t gradients) {
  if (gradients == 0) return ends.empty();
  return !ends.empty() && ends.front() > 0 && ends.back() == gradients &&
         std::ranges::adjacent_find(ends, std::ranges::greater_equal()) == ends.end();
}

}  // namespace lissome

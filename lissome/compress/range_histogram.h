// A histogram of an activation's values, and the choice of its quantization range. observe_ranges keeps one for each
// value, smooth_channels one for each way to divide it.
#pragma once

#include <vector>

#include "lissome/compress.h"

namespace lissome {

struct RangeHistogram {
  static constexpr int64_t kBins = 2048;

  double low = 0, high = 0;
  double sum_of_lows = 0, sum_of_highs = 0;  // over the tensors of widen()
  int tensors = 0;                           // with elements
  // Without zeros, which every range holds exactly: half of what an activation gives would speak for no range.
  std::vector<double> counts = std::vector<double>(static_cast<size_t>(kBins), 0);

  double center(size_t bin) const { return low + (static_cast<double>(bin) + 0.5) * width(); }
  double width() const { return (high - low) / static_cast<double>(counts.size()); }
  bool is_countable() const;  // whether values differ, by an amount that f32 holds
  double total() const;       // values that were counted
  size_t find_bin(double value) const;

  void widen(const at::Tensor& tensor);  // to be called first, for all tensors that are counted later
  void count(const at::Tensor& tensor);
  ActivationRange choose_range(RangeMethod method) const;  // {0, 0} if no value was seen
};

}  // namespace lissome

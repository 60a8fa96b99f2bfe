// Sizes of one call of a model whose inputs have named dimensions: the batch as asked for, every size inside the range
// of its dimension, and in step with the sizes that the same dimension makes elsewhere.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lissome/base.h"

namespace lissome {

struct DimensionRange {
  int64_t least = 0, most = INT64_MAX;
};

// A size as a function of the dimensions' values, in their order; nothing where the size does not follow from them.
using SizeFormula = std::function<std::optional<int64_t>(std::span<const int64_t>)>;

struct BatchRange {
  int64_t least = 1, most = INT64_MAX;
  bool is_fixed() const { return least == most; }
  // What is nearest to `batch`, of one sample at least.
  int64_t nearest(int64_t batch) const {
    return std::clamp<int64_t>(batch, std::max<int64_t>(least, 1), std::max<int64_t>(most, 1));
  }
};

class CallSizes {
 public:
  // `inputs`: the sizes of each; inputs that are no tensors have none. `requirements` are met where they are at least
  // 0.
  CallSizes(std::vector<DimensionRange> dimensions, std::vector<std::vector<SizeFormula>> inputs,
            std::vector<SizeFormula> requirements = {});

  // First sizes that the model takes: of the first input that has one. At least 1, if the model takes that.
  const BatchRange& batch() const { return batch_; }
  // The sizes of each input for a batch of this many samples; 0 stands for the smallest. Dimensions that are no batch
  // are 16, or what is nearest in their range; where requirements are not met then, a little more or less, if that
  // helps. Throws usage for a batch out of range.
  std::vector<Sizes> choose(int64_t batch) const;
  // The same batch, or the smallest where it is 0. Throws usage when it is out of range.
  int64_t choose_batch(int64_t batch) const;

 private:
  bool meets_requirements(std::span<const int64_t> values) const;
  // Values of the dimensions for a batch: empty where none near meet the requirements.
  std::vector<int64_t> choose_values(int64_t batch) const;
  void raise_least_batch();
  // The dimension that is itself the size; nothing where it is a number or computed.
  std::optional<size_t> find_dimension(const SizeFormula& size) const;

  std::vector<DimensionRange> dimensions_;
  std::vector<std::vector<SizeFormula>> inputs_;
  std::vector<SizeFormula> requirements_;
  std::vector<bool> is_batch_;  // by dimension
  BatchRange batch_;
};

}  // namespace lissome

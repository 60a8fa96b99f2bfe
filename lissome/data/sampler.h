// Which samples make up each batch of an epoch: a pure function of the seed and the epoch, so that any place of any
// epoch can be come back to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace lissome {

struct SequentialOrder {};
// Every sample once an epoch, in an order of its own each time.
struct ShuffledOrder {};
// `draws` samples an epoch (0: as many as there are), each with the odds of its weight.
struct WeightedOrder {
  std::vector<double> weights;  // one for each sample, at least 0, finite; not all 0
  int64_t draws = 0;
  bool replacement = true;  // false: no sample twice, and no more draws than weights above 0
};
// Shuffled, but for batches of samples of like length: stretches of `pool` batches are sorted by length before they are
// cut, and the batches are shuffled.
struct LengthBucketedOrder {
  std::vector<int64_t> lengths;  // one for each sample
  int64_t pool = 64;             // at least 1
};
using SampleOrder = std::variant<SequentialOrder, ShuffledOrder, WeightedOrder, LengthBucketedOrder>;

struct SamplerOptions {
  SampleOrder order = ShuffledOrder{};
  // Only these samples, which the order then goes over; weights and lengths are those of the subset.
  std::optional<std::vector<int64_t>> subset;
  int64_t batch = 32;
  bool drop_last = false;  // leave out a last batch that is not full
  uint64_t seed = 0;
  // For processes that share each batch: it is cut into `parts`, whose sizes differ by one at most, and this one takes
  // part `part`. A batch that has fewer than `least` samples for each part is cut into fewer, and the last are empty.
  int64_t parts = 1, part = 0, least = 1;
};

// The batches of one epoch.
struct EpochPlan {
  std::vector<int64_t> samples;            // batch after batch
  int64_t batch = 1;                       // samples in each batch but the last
  int64_t parts = 1, part = 0, least = 1;  // see SamplerOptions

  int64_t batches() const;
  // The samples of a batch, 0 <= index < batches(), or of its part.
  std::span<const int64_t> take(int64_t index) const;
};

class Sampler {
 public:
  // `samples`: how many the source has. Throws usage: no batch to be had, a subset, weight or length that does not fit.
  Sampler(int64_t samples, SamplerOptions options);

  // Epochs count from 0.
  EpochPlan plan(int64_t epoch) const;
  int64_t batches() const;  // in every epoch
  // Samples of batch `index` of every epoch, or of its part.
  int64_t count(int64_t index) const;

 private:
  int64_t drawn() const;  // samples in every epoch, before drop_last

  int64_t samples_;
  SamplerOptions options_;
};

}  // namespace lissome

// Where a training loop's samples come from: whatever can hand out whole batches by a list of sample numbers. A loaded
// Dataset is one (make_source), a folder of images is another (open_image_folder), a user's class a third.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lissome/base.h"
#include "lissome/data.h"

namespace lissome {

struct Batch {
  std::vector<NamedArray> inputs;  // each [count, ...]
  std::optional<Array> labels;     // [count] or [count, ...]
  std::vector<int64_t> samples;    // which samples of the source these are, in this order

  int64_t count() const { return static_cast<int64_t>(samples.size()); }
};

// Derive from it to train on data of your own. Several threads call at once: take() must not change what others see.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual int64_t samples() const = 0;
  // Puts these samples (each 0 to samples() - 1, in this order, possibly twice) into batch.inputs and batch.labels.
  // `batch` may hold what an earlier call left: reuse_array() takes such memory again. Throws for a sample that cannot
  // be had; the loader then finds out which one it was.
  virtual void take(std::span<const int64_t> samples, Batch& batch) const = 0;
  // How errors name a sample.
  virtual std::string describe(int64_t sample) const { return "sample " + std::to_string(sample); }
};

// The dataset as fit_dataset left it; a copy that shares its arrays is kept.
std::shared_ptr<const BatchSource> make_source(Dataset dataset);

// Makes `array` one of this type and these sizes. Its memory is kept where it has as many bytes and nobody else holds
// it; the elements are then whatever they were.
Array& reuse_array(Array& array, Dtype dtype, Sizes sizes);
// The same for an input of a batch, at this place and of this name.
Array& reuse_input(Batch& batch, size_t index, const std::string& name, Dtype dtype, Sizes sizes);

// Throws invalid_input, naming the sample by `source`, when an input or a float label holds NaN or infinity.
void check_finite(const Batch& batch, const BatchSource& source);

}  // namespace lissome

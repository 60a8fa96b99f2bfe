// The batches of an epoch, as the inputs of a program with its loss: shuffled by seed and epoch alone, so that any
// place in a training can be found again.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "lissome/data.h"
#include "lissome/program.h"

namespace lissome {

// The batch size that a model asks for; nothing where any will do.
std::optional<int64_t> find_fixed_batch(const Program& model);

// As asked, the model's fixed size, or all samples where there are fewer. Throws invalid_input where no batch is full.
int64_t choose_batch(const Program& model, const Dataset& data, int64_t asked);

// Samples first .. first + count - 1, the model's inputs and then labels where `inputs` counts one more.
std::vector<at::Tensor> take_inputs(const Dataset& data, int64_t first, int64_t count, size_t inputs);

class Batches {
 public:
  // `data` must outlive it. With a fixed batch, which then is `batch`, samples that fill none are left out.
  Batches(const Dataset& data, int64_t batch, bool fixed, size_t inputs, uint64_t seed);

  int64_t per_epoch() const;
  int64_t batch() const { return batch_; }
  // From 1. Orders the samples anew.
  void begin_epoch(int64_t epoch);
  int64_t count_samples(int64_t index) const;
  std::vector<at::Tensor> take(int64_t index) const;

 private:
  Dataset shuffled_;
  const std::vector<int64_t>& rows_;
  int64_t batch_;
  bool fixed_;
  size_t inputs_;
  uint64_t seed_;
};

}  // namespace lissome

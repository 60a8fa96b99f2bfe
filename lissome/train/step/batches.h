// The batches of an epoch, as the inputs of a program with its loss: shuffled by seed and epoch alone, so that any
// place in a training can be found again.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lissome/data.h"
#include "lissome/loader.h"
#include "lissome/program.h"

namespace lissome {

// The batch size that a model asks for; nothing where any will do.
std::optional<int64_t> find_fixed_batch(const Program& model);

// The fewest samples that a model takes at once: its fixed batch, or where the dimension of its batch begins, 2 where
// torch.export was left to choose (Dim.DYNAMIC). And the most.
int64_t find_least_batch(const Program& model);
int64_t find_most_batch(const Program& model);

// Samples that gradients are recorded with: a few of `batch`, or all where the model has a fixed batch.
int64_t choose_examples(const Program& model, int64_t batch);

// Samples first .. first + count - 1, the model's inputs and then labels where `inputs` counts one more.
std::vector<at::Tensor> take_inputs(const Dataset& data, int64_t first, int64_t count, size_t inputs);

struct BatchOptions {
  // Threads that load batches ahead; 0: none. Nothing: found while training, by the time that steps wait.
  std::optional<int> workers;
  int prefetch = 2;        // batches a worker that may wait; found too where workers are
  std::string transforms;  // of images: see parse_transforms()
  BadSamples bad_samples = BadSamples::fatal;
  int64_t cache_bytes = 0;  // samples kept as the source gave them
  bool pin_memory = false;  // batches in page-locked memory, which a device copies from faster; see can_pin_memory()
  // Where batches come from in place of the dataset, as fit_batches() would leave them; the dataset then holds the
  // first samples, at least a batch of them, and its labels alone are checked beforehand.
  std::shared_ptr<const BatchSource> source;
};

// Of the source, where there is one, else of the dataset.
int64_t count_samples(const Dataset& data, const BatchOptions& options);

// As asked (0: all), the model's fixed size, or the most that the model takes or that there are, where that is fewer.
// Throws invalid_input where no batch is full, or the dataset beside a source holds less than one, and usage for fewer
// than the model takes.
int64_t choose_batch(const Program& model, const Dataset& data, const BatchOptions& options, int64_t asked);

// Whether libtorch sees a device that page-locked memory is for. Without one, pin_memory has no effect.
bool can_pin_memory();

// The dataset fitted to these inputs (see fit_dataset()) as these options mean it: where a transform makes floats of
// bytes, bytes are images.
Dataset fit_batches(Dataset dataset, std::span<const DataSignature> inputs, const BatchOptions& options);

class Batches {
 public:
  // A last batch of fewer than `least` samples is left out of its epoch. `inputs`: see take_inputs().
  Batches(const Dataset& data, int64_t batch, int64_t least, size_t inputs, uint64_t seed, const BatchOptions& options);

  int64_t per_epoch() const { return loader_->batches(); }
  // The inputs of batch `index`, from 0, of an epoch, from 1; loads on from there. Their count is that of the first.
  std::vector<at::Tensor> take(int64_t epoch, int64_t index);
  // To be called after each step. Once, when that is settled: how batches are loaded from now on, and why.
  std::optional<std::string> tune();
  // Where workers are found and were settled, looks for them once more; false elsewhere.
  bool tune_anew();
  // Samples that could not be had, as far as not told before.
  std::vector<std::string> list_new_bad_samples();

 private:
  std::unique_ptr<Loader> loader_;
  std::optional<LoaderTuner> tuner_;
  size_t inputs_;
  bool pins_;
  Batch batch_;
  size_t told_ = 0;
};

}  // namespace lissome

// The batches of an epoch, as inputs of a program with its loss. The order depends only on seed and epoch, so that a
// training can be resumed at any batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lissome/data.h"
#include "lissome/loader.h"
#include "lissome/program.h"

namespace lissome {

// The fixed batch size of a model; empty if it takes several.
std::optional<int64_t> find_fixed_batch(const Program& model);

// The fewest and the most samples that a model takes at once: its fixed batch, or the range of the batch dimension. A
// range that torch.export chose (Dim.DYNAMIC) begins at 2.
int64_t find_least_batch(const Program& model);
int64_t find_most_batch(const Program& model);

// The number of samples that gradients are recorded with: a few, which no size of the model equals, or `batch` if the
// model has a fixed batch.
int64_t choose_examples(const Program& model, int64_t batch);

// The samples first .. first + count - 1: the model's inputs, and then the labels if `inputs` counts one more.
std::vector<at::Tensor> take_inputs(const Dataset& data, int64_t first, int64_t count, size_t inputs);

// The same as a model is validated with: after what `transforms` (see parse_transforms()) do to every sample alike,
// which is normalize. Random ones are for training alone, and those that change sizes are not for data that fit the
// model.
std::vector<at::Tensor> take_validation_inputs(const Dataset& data, int64_t first, int64_t count, size_t inputs,
                                               const std::string& transforms);

// What happens where a batch has fewer samples than processes share it, which only the last of an epoch may have.
enum class UnevenBatch : uint8_t {
  pad,   // a process without samples runs some that count nowhere
  drop,  // batches that are not full are left out of their epoch
  join   // a process without samples waits for the others, and takes part in their sums
};

// "pad"
std::string_view name_uneven(UnevenBatch uneven);
// Empty for a word that is none of these.
std::optional<UnevenBatch> parse_uneven(std::string_view word);

struct BatchOptions {
  // Threads that load batches ahead; 0: none. Empty: chosen while training, by the time that steps wait for data.
  std::optional<int> workers;
  int prefetch = 2;        // batches that each worker loads ahead; chosen as well if workers are
  std::string transforms;  // of images, see parse_transforms()
  BadSamples bad_samples = BadSamples::fatal;
  int64_t cache_bytes = 0;  // memory for caching samples of the source
  bool pin_memory =
      false;  // load batches into page-locked memory, from which a device copies faster; see can_pin_memory()
  UnevenBatch uneven = UnevenBatch::pad;
  int64_t parts = 1, part = 0;  // of each batch, for processes that share it; see SamplerOptions
  // Source of batches in place of the dataset, in the form that fit_batches() gives. The dataset then holds the first
  // samples, at least a batch, and only its labels are checked beforehand.
  std::shared_ptr<const BatchSource> source;
};

// The number of samples of the source if there is one, else of the dataset.
int64_t count_samples(const Dataset& data, const BatchOptions& options);

// The batch size: the model's fixed size, or `asked` (0: all samples), bounded by the range of the model and the number
// of samples. Throws invalid_input if no batch is full or the dataset beside a source holds less than a batch, and
// usage if `asked` is less than the model takes.
int64_t choose_batch(const Program& model, const Dataset& data, const BatchOptions& options, int64_t asked);

// Whether libtorch finds a device that uses page-locked memory. Without one, pin_memory has no effect.
bool can_pin_memory();

// Fits the dataset to these inputs (see fit_dataset()). If a transform converts bytes to floats, bytes are images.
Dataset fit_batches(Dataset dataset, std::span<const DataSignature> inputs, const BatchOptions& options);

class Batches {
 public:
  // A last batch of fewer than `least` samples is left out of its epoch. `inputs` as for take_inputs().
  Batches(const Dataset& data, int64_t batch, int64_t least, size_t inputs, uint64_t seed, const BatchOptions& options);

  int64_t per_epoch() const { return loader_->batches(); }
  // The inputs of batch `index`, from 0, of an epoch, from 1. Loading continues from there. Empty where this process
  // has no part of the batch.
  std::vector<at::Tensor> take(int64_t epoch, int64_t index);
  // To be called after each step. Returns once, when tuning has ended, how batches are loaded from now on, and why.
  std::optional<std::string> tune();
  // Starts tuning once more. Returns false if workers are not tuned or tuning still runs.
  bool tune_anew();
  // Samples that could not be loaded since the last call.
  std::vector<std::string> list_new_bad_samples();

 private:
  std::unique_ptr<Loader> loader_;
  std::optional<LoaderTuner> tuner_;
  size_t inputs_;
  bool pins_;
  Batch batch_;
  size_t reported_ = 0;
};

}  // namespace lissome

#include "lissome/train/step/batches.h"

#include <ATen/Context.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>

namespace lissome {
namespace {

constexpr std::array<std::string_view, 3> kUnevenNames = {"pad", "drop", "join"};  // in the order of UnevenBatch

at::Tensor to_tensor(const Array& array) {
  return at::from_blob(array.storage.get(), array.sizes, [kept = array.storage](void*) {}, scalar_type_of(array.dtype));
}

// The batch size when every dimension is at this end of its range.
std::optional<int64_t> evaluate_batch(const Program& model, int64_t NamedDimension::* end) {
  const ValueType& type = model.value(model.inputs.at(0).value).type;
  if (type.sizes.empty()) return std::nullopt;
  DimensionBindings bindings;
  for (const NamedDimension& dimension : model.dimensions) bindings[dimension.name] = dimension.*end;
  return type.sizes[0].try_evaluate(bindings);
}

// Whether a value has this size in its own right. A batch of as many could not be told from it.
bool has_size(const Program& model, int64_t size) {
  return std::ranges::any_of(model.values, [&](const Value& value) {
    return std::ranges::any_of(value.type.sizes, [&](const Dimension& one) { return one.constant() == size; });
  });
}

}  // namespace

std::string_view name_uneven(UnevenBatch uneven) { return kUnevenNames.at(static_cast<size_t>(uneven)); }

std::optional<UnevenBatch> parse_uneven(std::string_view word) {
  const auto* found = std::ranges::find(kUnevenNames, word);
  if (found == kUnevenNames.end()) return std::nullopt;
  return static_cast<UnevenBatch>(found - kUnevenNames.begin());
}

std::optional<int64_t> find_fixed_batch(const Program& model) {
  const ValueType& type = model.value(model.inputs.at(0).value).type;
  return type.sizes.empty() ? std::nullopt : type.sizes[0].constant();
}

int64_t find_least_batch(const Program& model) {
  return std::max<int64_t>(evaluate_batch(model, &NamedDimension::minimum).value_or(1), 1);
}

int64_t find_most_batch(const Program& model) {
  return std::max(evaluate_batch(model, &NamedDimension::maximum).value_or(INT64_MAX), find_least_batch(model));
}

int64_t choose_examples(const Program& model, int64_t batch) {
  if (find_fixed_batch(model)) return batch;
  constexpr std::array<int64_t, 5> kExampleSamples = {3, 5, 7, 11, 13};
  const auto* fewest = std::find_if(kExampleSamples.begin(), kExampleSamples.end(), [&](int64_t samples) {
    return samples >= find_least_batch(model) && !has_size(model, samples);
  });
  const int64_t samples = fewest == kExampleSamples.end() ? kExampleSamples[0] : *fewest;
  return std::min(std::max(samples, find_least_batch(model)), batch);
}

int64_t count_samples(const Dataset& data, const BatchOptions& options) {
  return options.source ? options.source->samples() : data.samples();
}

int64_t choose_batch(const Program& model, const Dataset& data, const BatchOptions& options, int64_t asked) {
  const int64_t samples = count_samples(data, options);
  if (samples == 0 || data.samples() == 0) throw_error(ErrorKind::invalid_input, data.source, ": there are no samples");
  const std::optional<int64_t> fixed = find_fixed_batch(model);
  if (fixed && *fixed > samples)
    throw_error(ErrorKind::invalid_input, data.source, ": ", samples, " samples fill no batch; the model takes ",
                *fixed, " at once");
  const int64_t least = find_least_batch(model);
  if (!fixed && asked != 0 && asked < least)
    throw_error(ErrorKind::usage, "a batch of ", asked, " was asked for; the model takes batches of ", least,
                " and more");
  if (!fixed && samples < least)
    throw_error(ErrorKind::invalid_input, data.source, ": ", samples, " samples fill no batch; the model takes ", least,
                " and more at once");
  const int64_t most = std::min(samples, find_most_batch(model));
  const int64_t batch = fixed.value_or(asked == 0 ? most : std::min(asked, most));
  if (options.source && asked != 0 && data.samples() < batch)
    throw_error(ErrorKind::invalid_input, data.source, ": the first ", data.samples(),
                " samples are given beside the source of batches; there must be at least a batch, ", batch);
  return batch;
}

bool can_pin_memory() { return at::hasCUDA(); }

Dataset fit_batches(Dataset dataset, std::span<const DataSignature> inputs, const BatchOptions& options) {
  dataset.is_images |= makes_floats(options.transforms);
  if (options.bad_samples == BadSamples::fatal) return fit_dataset(std::move(dataset), inputs);
  std::vector<DataSignature> any(inputs.begin(), inputs.end());
  for (DataSignature& input : any) input.allow_nonfinite = true;
  return fit_dataset(leave_out_bad(std::move(dataset), inputs), any);
}

std::vector<at::Tensor> take_inputs(const Dataset& data, int64_t first, int64_t count, size_t inputs) {
  std::vector<at::Tensor> tensors;
  for (const NamedArray& column : take_batch(data, first, count)) tensors.push_back(to_tensor(column.array));
  if (tensors.size() < inputs) tensors.push_back(to_tensor(take_labels(data, first, count)));
  return tensors;
}

std::vector<at::Tensor> take_validation_inputs(const Dataset& data, int64_t first, int64_t count, size_t inputs,
                                               const std::string& transforms) {
  std::vector<at::Tensor> tensors = take_inputs(data, first, count, inputs);
  std::vector<Transform> normalizing = transforms.empty() ? std::vector<Transform>() : parse_transforms(transforms);
  std::erase_if(normalizing, [](const Transform& one) { return !std::holds_alternative<Normalize>(one.kind); });
  if (normalizing.empty()) return tensors;
  const auto images = std::find_if(data.columns.begin(), data.columns.end(), [](const DataColumn& column) {
    return column.array.sizes.size() == 3 || column.array.sizes.size() == 4;
  });
  if (images == data.columns.end()) return tensors;  // the loader refuses them
  at::Tensor& tensor = tensors[static_cast<size_t>(images - data.columns.begin())];
  Array array = take_batch(data, first, count)[static_cast<size_t>(images - data.columns.begin())].array, normalized;
  array.sizes = images->array.sizes;
  array.sizes[0] = count;
  const std::vector<int64_t> samples(static_cast<size_t>(count));
  TransformPipeline(std::move(normalizing)).apply(array, samples, 0, normalized);
  tensor = to_tensor(normalized).view(tensor.sizes());
  return tensors;
}

Batches::Batches(const Dataset& data, int64_t batch, int64_t least, size_t inputs, uint64_t seed,
                 const BatchOptions& options)
    : inputs_(inputs), pins_(options.pin_memory && can_pin_memory()) {
  SamplerOptions sampler;
  sampler.batch = batch;
  sampler.drop_last = options.uneven == UnevenBatch::drop || count_samples(data, options) % batch < least;
  sampler.seed = seed;
  sampler.parts = options.parts, sampler.part = options.part, sampler.least = least;
  LoaderOptions loader;
  loader.workers = options.workers.value_or(0);
  loader.prefetch = options.prefetch;
  loader.bad_samples = options.bad_samples;
  // Without a source, fit_dataset() has checked already.
  loader.check_finite = options.source || options.bad_samples == BadSamples::skip;
  loader.cache_bytes = options.cache_bytes;
  TransformPipeline transforms;
  if (!options.transforms.empty()) transforms = TransformPipeline(parse_transforms(options.transforms), seed);
  loader_ = std::make_unique<Loader>(options.source ? options.source : make_source(data), std::move(sampler),
                                     std::move(transforms), loader);
  if (!options.workers) tuner_.emplace(*loader_);
}

std::vector<at::Tensor> Batches::take(int64_t epoch, int64_t index) {
  if (loader_->count(index) == 0) return {};
  const LoaderPosition wanted{epoch - 1, index}, at = loader_->position();
  if (at.epoch != wanted.epoch || at.batch != wanted.batch) loader_->restore(wanted);
  LISSOME_CHECK(loader_->next(batch_), "epoch ", epoch, " has no batch ", index);
  std::vector<at::Tensor> tensors;
  for (const NamedArray& column : batch_.inputs) tensors.push_back(to_tensor(column.array));
  if (tensors.size() < inputs_ && batch_.labels) tensors.push_back(to_tensor(*batch_.labels));
  if (pins_) {
    for (at::Tensor& tensor : tensors) tensor = tensor.pin_memory();
  }
  return tensors;
}

std::optional<std::string> Batches::tune() {
  if (!tuner_ || tuner_->done()) return std::nullopt;
  tuner_->observe();
  return tuner_->done() ? std::optional(tuner_->result().summary) : std::nullopt;
}

bool Batches::tune_anew() {
  if (!tuner_ || !tuner_->done()) return false;
  tuner_.emplace(*loader_);
  return true;
}

std::vector<std::string> Batches::list_new_bad_samples() {
  const LoaderStatistics statistics = loader_->statistics();
  std::vector<std::string> texts;
  for (; reported_ < statistics.bad_samples.size(); ++reported_) {
    const BadSample& bad = statistics.bad_samples[reported_];
    texts.push_back("a sample was left out: " + bad.reason);
  }
  return texts;
}

}  // namespace lissome

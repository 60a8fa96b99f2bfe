// See batch_maker.h. A source that throws for a batch is asked for its samples one by one: so the bad ones are known,
// whatever its errors say.
#include "lissome/data/batch_maker.h"

#include <exception>
#include <new>

#include "lissome/measure.h"

namespace lissome {
namespace {

// Whether an error may be about a sample. Wrong usage, our own faults and a lack of memory are not.
bool is_about_data(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return false;
  const auto* own = dynamic_cast<const Error*>(&error);
  return own == nullptr || own->kind() == ErrorKind::invalid_input || own->kind() == ErrorKind::unsupported ||
         own->kind() == ErrorKind::io;
}

std::string read_message(const std::exception& error) {
  const auto* own = dynamic_cast<const Error*>(&error);
  return own != nullptr ? own->message() : error.what();
}

void check_counts(const Batch& batch, const BatchSource& source) {
  const auto check = [&](const std::string& what, const Array& array) {
    if (array.sizes.empty() || array.sizes[0] != batch.count())
      throw_error(ErrorKind::invalid_input, "a batch of ", batch.count(), " samples from ",
                  batch.samples.empty() ? std::string("nowhere") : source.describe(batch.samples[0]), ": ", what,
                  " has the sizes ", format_sizes(array.sizes), "; the first must be the number of samples.");
  };
  for (const NamedArray& input : batch.inputs) check("input " + quote(input.name), input.array);
  if (batch.labels) check("the labels", *batch.labels);
}

}  // namespace

BatchMaker::BatchMaker(std::shared_ptr<const BatchSource> source, TransformPipeline transforms,
                       const LoaderOptions& options)
    : source_(std::move(source)),
      transforms_(std::move(transforms)),
      bad_samples_(options.bad_samples),
      check_finite_(options.check_finite) {}

void BatchMaker::take(std::span<const int64_t> samples, Batch& batch) const {
  batch.samples.assign(samples.begin(), samples.end());
  source_->take(samples, batch);
  check_counts(batch, *source_);
  if (check_finite_) check_finite(batch, *source_);
}

void BatchMaker::take_good(std::span<const int64_t> samples, Batch& batch, std::vector<BadSample>& bad) const {
  std::vector<int64_t> good;
  for (const int64_t sample : samples) {
    Batch one;
    try {
      take({&sample, 1}, one);
      good.push_back(sample);
    } catch (const std::exception& error) {
      if (!is_about_data(error)) throw;
      std::string reason = read_message(error);
      const std::string name = source_->describe(sample);
      if (reason.find(name) == std::string::npos) reason = name + ": " + reason;
      if (bad_samples_ == BadSamples::fatal) {
        const auto* own = dynamic_cast<const Error*>(&error);
        throw Error(own != nullptr ? own->kind() : ErrorKind::invalid_input, reason);
      }
      bad.push_back({sample, reason});
    }
  }
  if (good.empty()) {
    batch.samples.clear();
    return;
  }
  take(good, batch);
}

// The place among the inputs of those images that are transformed.
size_t BatchMaker::find_images(const Batch& raw) const {
  std::vector<size_t> found;
  std::vector<std::string> names;
  for (size_t i = 0; i < raw.inputs.size(); ++i) {
    const NamedArray& input = raw.inputs[i];
    names.push_back(input.name);
    const size_t axes = input.array.sizes.size();
    if (transforms_.input().empty() ? axes == 3 || axes == 4 : input.name == transforms_.input()) found.push_back(i);
  }
  if (found.size() == 1) return found[0];
  if (!transforms_.input().empty())
    throw_error(ErrorKind::usage, "there is no input ", quote(transforms_.input()),
                " to transform; there are: ", join(names, ", "), ".");
  throw_error(ErrorKind::usage, "transforms are for images, [samples, channels, height, width]; ", found.size(), " of ",
              join(names, ", "), " can be that. Name the input that they are for.");
}

// What is not transformed changes places with what the batch held, so that both memories go on being used.
void BatchMaker::transform(int64_t epoch, Batch& raw, Batch& batch) const {
  const size_t images = find_images(raw);
  batch.inputs.resize(raw.inputs.size());
  batch.samples = raw.samples;
  std::swap(batch.labels, raw.labels);
  for (size_t i = 0; i < raw.inputs.size(); ++i) {
    batch.inputs[i].name = raw.inputs[i].name;
    if (i == images)
      transforms_.apply(raw.inputs[i].array, raw.samples, epoch, batch.inputs[i].array);
    else
      std::swap(batch.inputs[i].array, raw.inputs[i].array);
  }
}

void BatchMaker::make(std::span<const int64_t> samples, int64_t epoch, Made& made, Batch& raw) const {
  const Stopwatch watch;
  made.bad.clear();
  Batch& taken = transforms_.empty() ? made.batch : raw;
  try {
    take(samples, taken);
  } catch (const std::exception& error) {
    if (!is_about_data(error)) throw;
    take_good(samples, taken, made.bad);
  }
  if (taken.samples.empty())
    made.batch.samples.clear();
  else if (!transforms_.empty())
    transform(epoch, raw, made.batch);
  made.seconds = watch.seconds();
}

}  // namespace lissome

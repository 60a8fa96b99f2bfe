// See cache_source.h. A batch is put together from kept samples, and from one call to the source for all others.
#include "lissome/data/cache_source.h"

#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace lissome {
namespace {

// One sample of one array.
struct Piece {
  std::string name;
  Dtype dtype = Dtype::f32;
  Sizes sizes;  // without the first
  std::string bytes;
};
using Sample = std::vector<Piece>;  // the inputs, then the label where there is one

struct Kept {
  Sample pieces;
  bool has_label = false;
};

Piece cut_piece(const std::string& name, const Array& array, size_t row) {
  const auto each = static_cast<size_t>(array.bytes() / array.sizes[0]);
  return {name,
          array.dtype,
          {array.sizes.begin() + 1, array.sizes.end()},
          std::string(array.data<char>() + row * each, each)};
}

Kept cut_sample(const Batch& batch, size_t row) {
  Kept kept;
  for (const NamedArray& input : batch.inputs) kept.pieces.push_back(cut_piece(input.name, input.array, row));
  if (batch.labels) kept.pieces.push_back(cut_piece("", *batch.labels, row));
  kept.has_label = batch.labels.has_value();
  return kept;
}

int64_t count_bytes_of(const Kept& kept) {
  int64_t bytes = 0;
  for (const Piece& piece : kept.pieces)
    bytes += static_cast<int64_t>(piece.bytes.size() + sizeof(Piece) + piece.sizes.size() * sizeof(int64_t));
  return bytes;
}

bool are_alike(const Kept& a, const Kept& b) {
  return a.has_label == b.has_label && std::equal(a.pieces.begin(), a.pieces.end(), b.pieces.begin(), b.pieces.end(),
                                                  [](const Piece& one, const Piece& other) {
                                                    return one.name == other.name && one.dtype == other.dtype &&
                                                           one.sizes == other.sizes;
                                                  });
}

class CachedSource : public BatchSource {
 public:
  CachedSource(std::shared_ptr<const BatchSource> source, int64_t bytes) : source_(std::move(source)), left_(bytes) {}

  int64_t samples() const override { return source_->samples(); }
  std::string describe(int64_t sample) const override { return source_->describe(sample); }

  void take(std::span<const int64_t> samples, Batch& batch) const override {
    std::vector<std::shared_ptr<const Kept>> found = find(samples);
    std::vector<int64_t> missing;
    for (size_t i = 0; i < samples.size(); ++i)
      if (found[i] == nullptr) missing.push_back(samples[i]);
    if (missing.size() == samples.size()) {
      source_->take(samples, batch);
      for (size_t i = 0; i < samples.size() && !is_full(); ++i) keep(samples[i], batch, i);
      return;
    }
    if (!missing.empty()) {
      Batch rest;
      source_->take(missing, rest);
      size_t row = 0;
      for (size_t i = 0; i < samples.size(); ++i)
        if (found[i] == nullptr) found[i] = keep(samples[i], rest, row++);
    }
    for (const auto& kept : found)
      if (!are_alike(*kept, *found[0])) return source_->take(samples, batch);
    assemble(found, batch);
  }

 private:
  std::vector<std::shared_ptr<const Kept>> find(std::span<const int64_t> samples) const {
    std::vector<std::shared_ptr<const Kept>> found;
    const std::shared_lock lock(mutex_);
    for (const int64_t sample : samples) {
      const auto at = kept_.find(sample);
      found.push_back(at == kept_.end() ? nullptr : at->second);
    }
    return found;
  }

  bool is_full() const {
    const std::shared_lock lock(mutex_);
    return left_ <= 0;
  }

  std::shared_ptr<const Kept> keep(int64_t sample, const Batch& batch, size_t row) const {
    auto kept = std::make_shared<const Kept>(cut_sample(batch, row));
    const int64_t bytes = count_bytes_of(*kept);
    const std::unique_lock lock(mutex_);
    if (bytes > left_)
      left_ = 0;  // full: samples are of like size
    else if (kept_.emplace(sample, kept).second)
      left_ -= bytes;
    return kept;
  }

  static void assemble(const std::vector<std::shared_ptr<const Kept>>& found, Batch& batch) {
    const Kept& first = *found[0];
    const size_t inputs = first.pieces.size() - (first.has_label ? 1 : 0);
    batch.inputs.resize(inputs);
    if (first.has_label && !batch.labels) batch.labels.emplace();
    if (!first.has_label) batch.labels.reset();
    for (size_t i = 0; i < first.pieces.size(); ++i) {
      const Piece& piece = first.pieces[i];
      Sizes sizes = {static_cast<int64_t>(found.size())};
      sizes.insert(sizes.end(), piece.sizes.begin(), piece.sizes.end());
      Array& array = i < inputs ? reuse_input(batch, i, piece.name, piece.dtype, std::move(sizes))
                                : reuse_array(*batch.labels, piece.dtype, std::move(sizes));
      char* to = array.data<char>();
      for (const auto& kept : found) {
        const std::string& bytes = kept->pieces[i].bytes;
        std::memcpy(to, bytes.data(), bytes.size());
        to += bytes.size();
      }
    }
  }

  std::shared_ptr<const BatchSource> source_;
  mutable std::shared_mutex mutex_;
  mutable int64_t left_;
  mutable std::unordered_map<int64_t, std::shared_ptr<const Kept>> kept_;
};

}  // namespace

std::shared_ptr<const BatchSource> cache_source(std::shared_ptr<const BatchSource> source, int64_t bytes) {
  return std::make_shared<CachedSource>(std::move(source), bytes);
}

}  // namespace lissome

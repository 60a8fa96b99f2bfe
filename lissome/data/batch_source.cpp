// A dataset as a source of batches, and what sources share: memory used again, values that are no numbers found.
#include "lissome/data/batch_source.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "lissome/data/gather.h"

namespace lissome {
namespace {

class DatasetSource : public BatchSource {
 public:
  explicit DatasetSource(Dataset dataset) : dataset_(std::move(dataset)) {}

  int64_t samples() const override { return dataset_.samples(); }

  void take(std::span<const int64_t> samples, Batch& batch) const override {
    std::vector<int64_t> rows;
    rows.reserve(samples.size());
    for (const int64_t sample : samples) {
      LISSOME_CHECK(sample >= 0 && sample < dataset_.samples(), "sample ", sample, " of ", dataset_.samples());
      rows.push_back(dataset_.rows[static_cast<size_t>(sample)]);
    }
    const auto count = static_cast<int64_t>(rows.size());
    batch.inputs.resize(dataset_.columns.size());
    for (size_t i = 0; i < dataset_.columns.size(); ++i) {
      const DataColumn& column = dataset_.columns[i];
      Sizes sizes = column.sample_sizes;
      sizes.insert(sizes.begin(), count);
      gather_column(column, rows, reuse_input(batch, i, column.name, column.dtype, std::move(sizes)));
    }
    if (!dataset_.labels) return batch.labels.reset();
    Sizes sizes = dataset_.labels->sizes;
    sizes[0] = count;
    if (!batch.labels) batch.labels.emplace();
    gather_rows(*dataset_.labels, rows, reuse_array(*batch.labels, dataset_.labels->dtype, std::move(sizes)));
  }

  std::string describe(int64_t sample) const override {
    return quote(dataset_.source) + ", sample " + std::to_string(dataset_.rows.at(static_cast<size_t>(sample)));
  }

 private:
  Dataset dataset_;
};

// The place of the first element that is no finite number, or the count of elements. Blocks are looked through as bits:
// an exponent of ones alone is what infinity and NaN have.
template <typename T>
int64_t find_nonfinite(const T* data, int64_t count) {
  constexpr int64_t kBlock = 4096;
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t end = std::min(count, first + kBlock);
    if constexpr (std::is_same_v<T, float>) {
      constexpr uint32_t kExponent = 0x7F800000;
      uint32_t found = 0;
      for (int64_t i = first; i < end; ++i)
        found |= (std::bit_cast<uint32_t>(data[i]) & kExponent) == kExponent ? 1U : 0U;
      if (found == 0) continue;
    }
    for (int64_t i = first; i < end; ++i)
      if (!std::isfinite(static_cast<double>(data[i]))) return i;
  }
  return count;
}

void check_finite_array(const Array& array, const std::string& name, const Batch& batch, const BatchSource& source) {
  if (!is_floating(array.dtype)) return;
  dispatch(array.dtype, [&]<typename T>() {
    if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
      const int64_t count = array.elements();
      const int64_t place = find_nonfinite(array.data<T>(), count);
      if (place == count) return;
      const int64_t each = count / array.sizes.at(0);
      throw_error(ErrorKind::invalid_input, source.describe(batch.samples.at(static_cast<size_t>(place / each))), ": ",
                  name, " holds ", static_cast<double>(array.data<T>()[place]), " at element ", place % each,
                  "; finite numbers are allowed.");
    }
  });
}

}  // namespace

std::shared_ptr<const BatchSource> make_source(Dataset dataset) {
  LISSOME_CHECK(dataset.image_files.empty(), quote(dataset.source), " is no source before it is fitted");
  return std::make_shared<DatasetSource>(std::move(dataset));
}

namespace {

// Whether nobody else holds the storage, nor reads it any more. A count of one is read without order; giving up a share
// sees what the holders before did until they gave up theirs.
bool is_alone(const Array& array) {
  if (array.storage.use_count() != 1) return false;
  std::shared_ptr<const void>(array.storage).reset();
  return true;
}

}  // namespace

Array& reuse_array(Array& array, Dtype dtype, Sizes sizes) {
  if (is_alone(array) && count_bytes(dtype, sizes) == array.bytes()) {
    array.dtype = dtype;
    array.sizes = std::move(sizes);
  } else {
    array = make_array(dtype, std::move(sizes));
  }
  return array;
}

Array& reuse_input(Batch& batch, size_t index, const std::string& name, Dtype dtype, Sizes sizes) {
  if (batch.inputs.size() <= index) batch.inputs.resize(index + 1);
  batch.inputs[index].name = name;
  return reuse_array(batch.inputs[index].array, dtype, std::move(sizes));
}

void check_finite(const Batch& batch, const BatchSource& source) {
  for (const NamedArray& input : batch.inputs)
    check_finite_array(input.array, "input " + quote(input.name), batch, source);
  if (batch.labels) check_finite_array(*batch.labels, "the label", batch, source);
}

}  // namespace lissome

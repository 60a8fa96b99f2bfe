// take_batch and take_labels, and how rows are gathered: bytes and floats are converted on the way, so that a large
// data set is never held twice; rarer types are gathered first.
#include <array>
#include <cstring>

#include "lissome/data.h"
#include "lissome/data/gather.h"

namespace lissome {
namespace {

Sizes batch_sizes(const Sizes& sample_sizes, size_t count) {
  Sizes sizes = {static_cast<int64_t>(count)};
  sizes.insert(sizes.end(), sample_sizes.begin(), sample_sizes.end());
  return sizes;
}

void scale_values(Array* array, double scale) {
  const int64_t count = array->elements();
  dispatch(array->dtype, [&]<typename T>() {
    if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
      T* data = array->data<T>();
      for (int64_t i = 0; i < count; ++i)
        data[i] = static_cast<T>(static_cast<float>(static_cast<double>(data[i]) * scale));
    } else {
      LISSOME_CHECK(false, "scaled ", dtype_name(array->dtype));
    }
  });
}

// Images of bytes: each of the 256 values is scaled once.
void gather_scaled_bytes(const DataColumn& column, std::span<const int64_t> rows, float* out) {
  std::array<float, 256> scaled;
  for (size_t value = 0; value < scaled.size(); ++value)
    scaled[value] = static_cast<float>(static_cast<double>(value) * column.scale);
  const int64_t each = count_elements(column.sample_sizes);
  for (const int64_t row : rows) {
    const uint8_t* from = column.array.data<uint8_t>() + row * each;
    for (int64_t i = 0; i < each; ++i) out[i] = scaled[from[i]];
    out += each;
  }
}

std::span<const int64_t> choose_rows(const Dataset& dataset, int64_t first, int64_t count) {
  LISSOME_CHECK(first >= 0 && count >= 0 && count <= dataset.samples() - first, "samples ", first, " + ", count, " of ",
                dataset.samples());
  return std::span(dataset.rows).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
}

}  // namespace

void gather_rows(const Array& array, std::span<const int64_t> rows, Array& out) {
  const auto bytes = static_cast<size_t>(array.bytes() / array.sizes[0]);
  char* to = out.data<char>();
  for (const int64_t row : rows) {
    std::memcpy(to, array.data<char>() + static_cast<size_t>(row) * bytes, bytes);
    to += bytes;
  }
}

void gather_column(const DataColumn& column, std::span<const int64_t> rows, Array& out) {
  const Dtype from = column.array.dtype;
  if (from == column.dtype && column.scale == 1) return gather_rows(column.array, rows, out);
  if (from == Dtype::u8 && column.dtype == Dtype::f32) return gather_scaled_bytes(column, rows, out.data<float>());
  Array gathered = make_array(from, batch_sizes(column.sample_sizes, rows.size()));
  gather_rows(column.array, rows, gathered);
  if (from != column.dtype) gathered = cast_array(gathered.view(), column.dtype);
  if (column.scale != 1) scale_values(&gathered, column.scale);
  std::memcpy(out.storage.get(), gathered.storage.get(), static_cast<size_t>(gathered.bytes()));
}

std::vector<NamedArray> take_batch(const Dataset& dataset, int64_t first, int64_t count) {
  const auto rows = choose_rows(dataset, first, count);
  std::vector<NamedArray> batch;
  for (const DataColumn& column : dataset.columns) {
    Array array = make_array(column.dtype, batch_sizes(column.sample_sizes, rows.size()));
    gather_column(column, rows, array);
    batch.push_back({column.name, std::move(array)});
  }
  return batch;
}

Array take_labels(const Dataset& dataset, int64_t first, int64_t count) {
  LISSOME_CHECK(dataset.labels.has_value(), quote(dataset.source), " has no labels");
  const auto rows = choose_rows(dataset, first, count);
  Sizes sizes = dataset.labels->sizes;
  sizes[0] = count;
  Array labels = make_array(dataset.labels->dtype, sizes);
  gather_rows(*dataset.labels, rows, labels);
  return labels;
}

}  // namespace lissome

// take_batch and take_labels: gather the rows of a batch, then cast and scale what was gathered, so that a large data
// set is never held twice.
#include <cstring>

#include "lissome/data.h"

namespace lissome {
namespace {

Array gather_rows(const Array& array, std::span<const int64_t> rows) {
  Sizes sizes = array.sizes;
  sizes[0] = static_cast<int64_t>(rows.size());
  Array gathered = make_array(array.dtype, sizes);
  const auto bytes = static_cast<size_t>(array.bytes() / array.sizes[0]);
  char* out = gathered.data<char>();
  for (const int64_t row : rows) {
    std::memcpy(out, array.data<char>() + static_cast<size_t>(row) * bytes, bytes);
    out += bytes;
  }
  return gathered;
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

std::span<const int64_t> choose_rows(const Dataset& dataset, int64_t first, int64_t count) {
  LISSOME_CHECK(first >= 0 && count >= 0 && count <= dataset.samples() - first, "samples ", first, " + ", count, " of ",
                dataset.samples());
  return std::span(dataset.rows).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
}

}  // namespace

std::vector<NamedArray> take_batch(const Dataset& dataset, int64_t first, int64_t count) {
  const auto rows = choose_rows(dataset, first, count);
  std::vector<NamedArray> batch;
  for (const DataColumn& column : dataset.columns) {
    Array array = gather_rows(column.array, rows);
    if (array.dtype != column.dtype) array = cast_array(array.view(), column.dtype);
    if (column.scale != 1) scale_values(&array, column.scale);
    array.sizes = column.sample_sizes;
    array.sizes.insert(array.sizes.begin(), count);
    batch.push_back({column.name, std::move(array)});
  }
  return batch;
}

Array take_labels(const Dataset& dataset, int64_t first, int64_t count) {
  LISSOME_CHECK(dataset.labels.has_value(), quote(dataset.source), " has no labels");
  return gather_rows(*dataset.labels, choose_rows(dataset, first, count));
}

}  // namespace lissome

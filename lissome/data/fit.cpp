// fit_dataset and fit_inputs: what arrays become as inputs: whether type and sizes may, and whether values are
// sound. Everything that a later run could stumble over is refused here, with file, entry and position.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "lissome/data.h"
#include "lissome/data/decode_images.h"
#include "lissome/data/match_inputs.h"

namespace lissome {
namespace {

std::string format_open_sizes(std::span<const int64_t> sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i)
    text += (i > 0 ? ", " : "") + (sizes[i] < 0 ? std::string("any") : std::to_string(sizes[i]));
  return text + "]";
}

std::string format_position(int64_t element, const Sizes& sizes) {
  Sizes position(sizes.size());
  for (size_t axis = sizes.size(); axis-- > 0;) {
    position[axis] = element % sizes[axis];
    element /= sizes[axis];
  }
  return format_sizes(position);
}

std::string describe_entry(const std::string& source, const std::string& name) {
  return quote(source) + ", entry " + quote(name);
}

// How elements of one type become another.
struct Conversion {
  bool allowed = false;
  bool noted = false;          // precision may be lost, so a note is added
  bool values_decide = false;  // narrower integers: allowed when every value fits
  double scale = 1;
};

// The values of a type as [least, most] exponents: whether `to` holds every value of `from`.
bool widens(Dtype from, Dtype to) {
  return dispatch(from, [&]<typename From>() {
    return dispatch(to, [&]<typename To>() {
      if constexpr (std::is_integral_v<From> && std::is_integral_v<To>)
        return std::is_signed_v<From> <= std::is_signed_v<To> &&
               std::numeric_limits<From>::digits <= std::numeric_limits<To>::digits;
      else
        return false;
    });
  });
}

Conversion find_conversion(Dtype from, Dtype to, bool is_images) {
  if (from == to) return {true};
  if (from == Dtype::c32 || to == Dtype::c32) return {};
  if (is_images && from == Dtype::u8 && is_floating(to)) return {true, false, false, 1.0 / 255};
  if (is_floating(from) && is_floating(to)) return {true, item_size(to) < item_size(from), false};
  const bool from_whole = is_integral(from) || from == Dtype::boolean;
  if (from_whole && is_integral(to)) return widens(from, to) ? Conversion{true} : Conversion{true, false, true};
  return {};
}

std::string advise_conversion(Dtype from, Dtype to) {
  if (is_floating(to) && is_integral(from)) {
    const char* const images =
        from == Dtype::u8 ? "; for images in train and budget, --transforms to_float does so." : ".";
    return " Scale the values and save them as " + std::string(dtype_name(to)) + images;
  }
  return " Save the array as " + std::string(dtype_name(to)) + ".";
}

template <typename T>
constexpr bool is_float_like = std::is_floating_point_v<T> || std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <typename T>
constexpr bool is_number = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// The largest number of an element type that is narrower than f64; 0 of others.
double find_largest(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return 65504;
    case Dtype::bf16: return 0x1.fep127;
    case Dtype::f32: return std::numeric_limits<float>::max();
    default: return 0;
  }
}

// The first element that `accepts` refuses ends everything.
// Marks the rows of an array that hold no finite number somewhere.
void mark_nonfinite(const Array& array, std::vector<bool>& marks) {
  if (!is_floating(array.dtype) || array.elements() == 0) return;
  const int64_t each = array.elements() / array.sizes[0];
  dispatch(array.dtype, [&]<typename T>() {
    if constexpr (is_float_like<T>) {
      const T* data = array.data<T>();
      for (int64_t i = 0; i < array.elements(); ++i)
        if (!std::isfinite(static_cast<double>(data[i]))) marks[static_cast<size_t>(i / each)] = true;
    }
  });
}

template <typename T, typename Accepts>
void check_elements(const Array& array, const DataSignature& input, const std::string& entry,
                    const std::string& allowed, Accepts accepts) {
  const T* data = array.data<T>();
  const int64_t count = array.elements();
  for (int64_t i = 0; i < count; ++i)
    if (!accepts(data[i]))
      throw_error(ErrorKind::invalid_input, entry, " holds ", +data[i], " at ", format_position(i, array.sizes),
                  "; input ", quote(input.name), " takes ", allowed, ".");
}

void check_values(const Array& array, const DataSignature& input, const Conversion& conversion,
                  const std::string& entry) {
  if (array.dtype == Dtype::c32) return;
  dispatch(array.dtype, [&]<typename T>() {
    if constexpr (is_float_like<T>) {
      if (const double most = find_largest(input.dtype); most > 0)
        check_elements<T>(array, input, entry, std::string(dtype_name(input.dtype)), [&](T v) {
          const auto number = static_cast<double>(v);
          return !std::isfinite(number) || std::abs(number) <= most;
        });
      if (!input.allow_nonfinite)
        check_elements<T>(array, input, entry, "finite numbers",
                          [](T v) { return std::isfinite(static_cast<double>(v)); });
    } else if constexpr (is_number<T>) {
      if (conversion.values_decide)
        dispatch(input.dtype, [&]<typename To>() {
          if constexpr (is_number<To>)
            check_elements<T>(array, input, entry, std::string(dtype_name(input.dtype)),
                              [](T v) { return std::in_range<To>(v); });
        });
      if (!input.range) return;
      const auto [least, most] = *input.range;
      check_elements<T>(
          array, input, entry, std::to_string(least) + " to " + std::to_string(most),
          [low = least, high = most](T v) { return !std::cmp_less(v, low) && !std::cmp_greater(v, high); });
    }
  });
}

bool sizes_fit(std::span<const int64_t> seen, std::span<const int64_t> allowed) {
  return std::equal(seen.begin(), seen.end(), allowed.begin(), allowed.end(),
                    [](int64_t size, int64_t expected) { return expected < 0 || size == expected; });
}

Conversion settle_conversion(const Array& array, const DataSignature& input, bool is_images, const std::string& entry,
                             std::vector<std::string>* notes) {
  const Conversion conversion = find_conversion(array.dtype, input.dtype, is_images);
  if (!conversion.allowed)
    throw_error(ErrorKind::invalid_input, entry, " has the type ", dtype_name(array.dtype), "; input ",
                quote(input.name), " takes ", dtype_name(input.dtype), ".",
                advise_conversion(array.dtype, input.dtype));
  check_values(array, input, conversion, entry);
  if (conversion.noted)
    notes->push_back(entry + " is rounded from " + std::string(dtype_name(array.dtype)) + " to " +
                     std::string(dtype_name(input.dtype)) + ".");
  return conversion;
}

[[noreturn]] void refuse_sizes(const std::string& entry, const Array& array, const DataSignature& input,
                               const Sizes& allowed) {
  throw_error(ErrorKind::invalid_input, entry, " has the sizes ", format_sizes(array.sizes), "; input ",
              quote(input.name), " takes ", format_open_sizes(allowed), ".");
}

// Images of bytes take any sizes with as many elements.
bool can_reshape(const Sizes& seen, std::span<const int64_t> allowed) {
  return std::all_of(allowed.begin(), allowed.end(), [](int64_t size) { return size >= 0; }) &&
         count_elements(allowed) == count_elements(seen);
}

bool column_fits(const DataColumn& column, const DataSignature& input, bool is_images) {
  if (input.sizes.empty()) return false;
  const auto inner = std::span(input.sizes).subspan(1);
  return find_conversion(column.array.dtype, input.dtype, is_images).allowed &&
         (sizes_fit(column.sample_sizes, inner) || (is_images && can_reshape(column.sample_sizes, inner)));
}

DataColumn fit_column(DataColumn column, const DataSignature& input, bool is_images, const std::string& entry,
                      std::vector<std::string>* notes) {
  Sizes allowed = input.sizes;
  if (allowed.empty()) refuse_sizes(entry, column.array, input, allowed);
  allowed[0] = -1;  // batches of any size are cut from the samples
  const Sizes inner(allowed.begin() + 1, allowed.end());
  if (!sizes_fit(column.sample_sizes, inner)) {
    if (!is_images || !can_reshape(column.sample_sizes, inner)) refuse_sizes(entry, column.array, input, allowed);
    column.sample_sizes = inner;
  }
  column.scale = settle_conversion(column.array, input, is_images, entry, notes).scale;
  column.dtype = input.dtype;
  column.name = input.name;
  return column;
}

}  // namespace

bool asks_for_nonfinite(std::string_view op) {
  static constexpr std::array kAsking = {"aten::isnan",      "aten::isfinite",      "aten::isinf",
                                         "aten::nan_to_num", "aten::nanmean",       "aten::nansum",
                                         "aten::nanmedian",  "aten::nanmedian.dim", "aten::nanquantile"};
  return std::ranges::find(kAsking, op) != kAsking.end();
}

Dataset leave_out_bad(Dataset dataset, std::span<const DataSignature> inputs) {
  if (!dataset.image_files.empty()) {
    decode_images(&dataset, inputs, true);
    return dataset;
  }
  if (dataset.columns.empty()) return dataset;
  std::vector<bool> marks(static_cast<size_t>(dataset.columns[0].array.sizes[0]));
  for (const DataColumn& column : dataset.columns) mark_nonfinite(column.array, marks);
  std::vector<std::string> left_out;
  std::erase_if(dataset.rows, [&](int64_t row) {
    if (!marks[static_cast<size_t>(row)]) return false;
    left_out.push_back(std::to_string(row));
    return true;
  });
  if (left_out.empty()) return dataset;
  if (dataset.rows.empty())
    throw_error(ErrorKind::invalid_input, quote(dataset.source), ": every sample holds NaN or infinity");
  const size_t count = left_out.size();
  dataset.notes.push_back(std::to_string(count) + (count == 1 ? " sample is" : " samples are") +
                          " left out, which hold NaN or infinity: " + join_few(std::move(left_out), 12));
  return dataset;
}

Dataset fit_dataset(Dataset dataset, std::span<const DataSignature> inputs) {
  if (!dataset.image_files.empty()) decode_images(&dataset, inputs, false);
  std::vector<NamedSizes> arrays;
  for (const DataColumn& column : dataset.columns)
    arrays.push_back({column.name, column.array.dtype, column.array.sizes});
  const auto fits = [&](size_t array, size_t input) {
    return column_fits(dataset.columns[array], inputs[input], dataset.is_images);
  };
  const std::vector<size_t> chosen = match_inputs(arrays, inputs, fits, dataset.source, &dataset.notes);
  std::vector<DataColumn> columns;
  for (size_t i = 0; i < inputs.size(); ++i)
    columns.push_back(fit_column(dataset.columns[chosen[i]], inputs[i], dataset.is_images,
                                 describe_entry(dataset.source, arrays[chosen[i]].name), &dataset.notes));
  dataset.columns = std::move(columns);
  return dataset;
}

std::vector<NamedArray> fit_inputs(const std::vector<NamedArray>& arrays, std::span<const DataSignature> inputs,
                                   const std::string& source, std::vector<std::string>* notes) {
  std::vector<NamedSizes> candidates;
  for (const NamedArray& named : arrays) candidates.push_back({named.name, named.array.dtype, named.array.sizes});
  const auto fits = [&](size_t array, size_t input) {
    return find_conversion(candidates[array].dtype, inputs[input].dtype, false).allowed &&
           sizes_fit(candidates[array].sizes, inputs[input].sizes);
  };
  const std::vector<size_t> chosen = match_inputs(candidates, inputs, fits, source, notes);
  std::vector<NamedArray> fitted;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Array& array = arrays[chosen[i]].array;
    const std::string entry = describe_entry(source, candidates[chosen[i]].name);
    if (!sizes_fit(array.sizes, inputs[i].sizes)) refuse_sizes(entry, array, inputs[i], inputs[i].sizes);
    settle_conversion(array, inputs[i], false, entry, notes);
    fitted.push_back(
        {inputs[i].name, array.dtype == inputs[i].dtype ? array : cast_array(array.view(), inputs[i].dtype)});
  }
  return fitted;
}

}  // namespace lissome

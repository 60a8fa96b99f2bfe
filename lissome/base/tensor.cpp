// Element types, sizes and dense arrays.
#include "lissome/base/tensor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "lissome/base/error.h"
#include "lissome/base/processor.h"

namespace lissome {
namespace {

// 8-bit floats are narrow: stored and cast, nothing is computed in them.
enum class Family : uint8_t { integral, floating, boolean, complex, narrow };

struct DtypeRow {
  Dtype dtype;
  std::string_view name;
  int64_t item_size;
  Family family;
};

// In the order of the enum: looked up by value.
constexpr DtypeRow kDtypes[] = {
    {Dtype::u8, "u8", 1, Family::integral},
    {Dtype::i8, "i8", 1, Family::integral},
    {Dtype::i16, "i16", 2, Family::integral},
    {Dtype::i32, "i32", 4, Family::integral},
    {Dtype::i64, "i64", 8, Family::integral},
    {Dtype::f16, "f16", 2, Family::floating},
    {Dtype::bf16, "bf16", 2, Family::floating},
    {Dtype::f32, "f32", 4, Family::floating},
    {Dtype::f64, "f64", 8, Family::floating},
    {Dtype::boolean, "bool", 1, Family::boolean},
    {Dtype::c32, "c32", 4, Family::complex},
    {Dtype::c64, "c64", 8, Family::complex},
    {Dtype::c128, "c128", 16, Family::complex},
    {Dtype::u16, "u16", 2, Family::integral},
    {Dtype::u32, "u32", 4, Family::integral},
    {Dtype::u64, "u64", 8, Family::integral},
    {Dtype::f8_e4m3fn, "f8_e4m3fn", 1, Family::narrow},
    {Dtype::f8_e5m2, "f8_e5m2", 1, Family::narrow},
    {Dtype::f8_e4m3fnuz, "f8_e4m3fnuz", 1, Family::narrow},
    {Dtype::f8_e5m2fnuz, "f8_e5m2fnuz", 1, Family::narrow},
};

const DtypeRow& find_dtype(Dtype dtype) {
  const auto index = static_cast<size_t>(dtype);
  LISSOME_CHECK(index < std::size(kDtypes) && kDtypes[index].dtype == dtype, "dtype ", index);
  return kDtypes[index];
}

// The product, nothing when a size is negative or the product overflows.
std::optional<int64_t> multiply_sizes(std::span<const int64_t> sizes, int64_t item) {
  bool is_empty = false;
  int64_t product = item;  // with 1 for 0, so that an empty array cannot hide sizes that overflow
  for (int64_t size : sizes) {
    is_empty |= size == 0;
    if (size < 0 || __builtin_mul_overflow(product, size == 0 ? 1 : size, &product)) return std::nullopt;
  }
  return is_empty ? 0 : product;
}

template <typename Item>
void copy_row(const std::byte* from, int64_t stride, int64_t count, std::byte* to) {
  constexpr int64_t kSize = sizeof(Item);
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * kSize, from + i * stride * kSize, kSize);
}

struct Item16 {
  std::byte bytes[16];
};

void copy_row(int64_t item, const std::byte* from, int64_t stride, int64_t count, std::byte* to) {
  if (stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(item * count));
    return;
  }
  switch (item) {
    case 1: copy_row<uint8_t>(from, stride, count, to); break;
    case 2: copy_row<uint16_t>(from, stride, count, to); break;
    case 4: copy_row<uint32_t>(from, stride, count, to); break;
    case 8: copy_row<uint64_t>(from, stride, count, to); break;
    default: copy_row<Item16>(from, stride, count, to); break;
  }
}

}  // namespace

std::string_view dtype_name(Dtype dtype) { return find_dtype(dtype).name; }

std::optional<Dtype> parse_dtype(std::string_view name) {
  for (const DtypeRow& row : kDtypes)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

int64_t item_size(Dtype dtype) { return find_dtype(dtype).item_size; }
bool is_floating(Dtype dtype) { return find_dtype(dtype).family == Family::floating; }
bool is_integral(Dtype dtype) { return find_dtype(dtype).family == Family::integral; }

int64_t count_elements(std::span<const int64_t> sizes) {
  const auto count = multiply_sizes(sizes, 1);
  if (count) return *count;
  const bool negative = std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; });
  throw_error(ErrorKind::invalid_input, "sizes ", format_sizes(sizes),
              negative ? " hold a negative size." : " overflow: at most 2^63 - 1 elements.");
}

std::optional<int64_t> count_bytes(Dtype dtype, std::span<const int64_t> sizes) {
  return multiply_sizes(sizes, item_size(dtype));
}

Sizes contiguous_strides(std::span<const int64_t> sizes) {
  Sizes strides(sizes.size());
  int64_t stride = 1;
  for (size_t axis = sizes.size(); axis-- > 0;) {
    strides[axis] = stride;
    if (axis > 0 && __builtin_mul_overflow(stride, std::max<int64_t>(sizes[axis], 1), &stride)) {
      throw_error(ErrorKind::invalid_input, "sizes ", format_sizes(sizes),
                  " overflow: their strides need over 64 bits.");
    }
  }
  return strides;
}

std::string format_sizes(std::span<const int64_t> sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

bool TensorView::is_contiguous() const {
  int64_t expected = 1;
  for (size_t axis = sizes.size(); axis-- > 0;) {
    if (sizes[axis] == 0) return true;
    if (sizes[axis] != 1 && strides[axis] != expected) return false;
    expected *= sizes[axis];
  }
  return true;
}

TensorView Array::view() const { return {dtype, sizes, contiguous_strides(sizes), storage.get()}; }

Array make_array(Dtype dtype, Sizes sizes) {
  static_cast<void>(count_elements(sizes));  // says what is wrong with the sizes themselves
  const auto wanted = count_bytes(dtype, sizes);
  constexpr int64_t kAlignment = 64;
  const int64_t bytes = wanted.value_or(INT64_MAX);
  if (bytes > INT64_MAX - kAlignment)
    throw_error(ErrorKind::invalid_input, "an array ", dtype_name(dtype), format_sizes(sizes), " overflows 63 bits.");
  constexpr int64_t kLarge = int64_t{1} << 30;
  if (bytes > kLarge && bytes > total_memory_bytes())
    throw_error(ErrorKind::over_budget, "no memory for an array ", dtype_name(dtype), format_sizes(sizes), " of ",
                bytes, " bytes; the machine has ", total_memory_bytes(), ".");
  // calloc leaves large blocks untouched until they are used, unlike clearing them here.
  void* block = std::calloc(1, static_cast<size_t>(bytes + kAlignment));
  if (block == nullptr)
    throw_error(ErrorKind::over_budget, "no memory for an array ", dtype_name(dtype), format_sizes(sizes), " of ",
                bytes, " bytes.");
  std::shared_ptr<void> owner(block, &std::free);
  const auto address = reinterpret_cast<uintptr_t>(block);
  const uintptr_t aligned = (address + kAlignment - 1) / kAlignment * kAlignment;
  return {dtype, std::move(sizes), std::shared_ptr<void>(owner, reinterpret_cast<void*>(aligned))};
}

void copy_elements(Dtype dtype, std::span<const int64_t> sizes, std::span<const int64_t> strides, const void* from,
                   void* to) {
  const int64_t item = item_size(dtype);
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  if (sizes.empty()) {
    std::memcpy(target, source, static_cast<size_t>(item));
  } else if (sizes.size() == 1) {
    if (sizes[0] > 0) copy_row(item, source, strides[0], sizes[0], target);
  } else {
    const int64_t bytes = item * count_elements(sizes.subspan(1));
    for (int64_t i = 0; i < sizes[0]; ++i) {
      copy_elements(dtype, sizes.subspan(1), strides.subspan(1), source + i * strides[0] * item, target + i * bytes);
    }
  }
}

Array copy_array(const TensorView& view) {
  LISSOME_CHECK(view.sizes.size() == view.strides.size(), "sizes ", format_sizes(view.sizes), ", strides ",
                format_sizes(view.strides));
  Array array = make_array(view.dtype, view.sizes);
  if (array.elements() == 0) return array;
  if (view.is_contiguous())
    std::memcpy(array.storage.get(), view.data, static_cast<size_t>(array.bytes()));
  else
    copy_elements(view.dtype, view.sizes, view.strides, view.data, array.storage.get());
  return array;
}

}  // namespace lissome

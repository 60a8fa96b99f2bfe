// Element types, and arrays outside libtorch: a view (borrowed, strided) and an owning dense array. They cross every
// boundary where torch may be absent: data files, the runtime, kernels' tests, the Python binding.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lissome {

enum class Dtype : uint8_t {
  u8,
  i8,
  i16,
  i32,
  i64,
  f16,
  bf16,
  f32,
  f64,
  boolean,
  c32,
  c64,
  c128,
  u16,
  u32,
  u64,
  f8_e4m3fn,
  f8_e5m2,
  f8_e4m3fnuz,
  f8_e5m2fnuz
};

// "f32", "i64", "bool", "c64" (complex of two f32) ...: the words of program text and of messages.
std::string_view dtype_name(Dtype dtype);
std::optional<Dtype> parse_dtype(std::string_view name);
int64_t item_size(Dtype dtype);  // bytes
bool is_floating(Dtype dtype);   // f16, bf16, f32, f64: what arithmetic is done in
bool is_integral(Dtype dtype);   // signed and unsigned integers, without bool

using Sizes = std::vector<int64_t>;

// Product of the sizes, 1 for a scalar. Throws invalid_input when a size is negative or the product overflows 63 bits.
int64_t count_elements(std::span<const int64_t> sizes);
// Bytes of a dense array, nothing when a size is negative or the bytes overflow 63 bits: for checks of files.
std::optional<int64_t> count_bytes(Dtype dtype, std::span<const int64_t> sizes);
// Row-major strides in elements.
Sizes contiguous_strides(std::span<const int64_t> sizes);
// "[8, 64]"
std::string format_sizes(std::span<const int64_t> sizes);

// A borrowed, strided array. `data` points at element 0; strides are in elements and may be zero, never negative.
struct TensorView {
  Dtype dtype = Dtype::f32;
  Sizes sizes;
  Sizes strides;
  void* data = nullptr;

  bool is_contiguous() const;
  int64_t elements() const { return count_elements(sizes); }
};

// An owning, dense, row-major array, 64-byte aligned unless it borrows a mapped file. Copies share the storage.
struct Array {
  Dtype dtype = Dtype::f32;
  Sizes sizes;
  std::shared_ptr<void> storage;

  int64_t elements() const { return count_elements(sizes); }
  int64_t bytes() const { return elements() * item_size(dtype); }
  template <typename T>
  T* data() const {
    return static_cast<T*>(storage.get());
  }
  TensorView view() const;
};

// Zero-filled. Throws over_budget when the machine has not that much memory.
Array make_array(Dtype dtype, Sizes sizes);
// A dense copy, whatever the strides.
Array copy_array(const TensorView& view);
// Elements of any strides (in elements), densely in row order into `to`. Allocates nothing.
void copy_elements(Dtype dtype, std::span<const int64_t> sizes, std::span<const int64_t> strides, const void* from,
                   void* to);

struct NamedArray {
  std::string name;
  Array array;
};

}  // namespace lissome

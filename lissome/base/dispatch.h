// From a run-time dtype to a compile-time type, in one place: dispatch(dtype, [&]<typename T>() { ... }). Half-width
// floats are small structs that turn into float; complex numbers are std::complex (c32 has no C++ type and is refused).
#pragma once

#include <bit>
#include <complex>
#include <cstdint>

#include "lissome/base/error.h"
#include "lissome/base/tensor.h"

namespace lissome {

// The upper half of a float; rounds to nearest even, NaN stays NaN.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) {
    const auto raw = std::bit_cast<uint32_t>(value);
    bits = value != value ? static_cast<uint16_t>(raw >> 16 | 0x40)
                          : static_cast<uint16_t>((raw + 0x7FFF + (raw >> 16 & 1)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

// IEEE binary16; rounds to nearest even, too large becomes infinity.
struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float value);
  operator float() const;
};

template <typename Function>
decltype(auto) dispatch(Dtype dtype, Function&& function) {
  switch (dtype) {
    case Dtype::u8: return function.template operator()<uint8_t>();
    case Dtype::i8: return function.template operator()<int8_t>();
    case Dtype::i16: return function.template operator()<int16_t>();
    case Dtype::i32: return function.template operator()<int32_t>();
    case Dtype::i64: return function.template operator()<int64_t>();
    case Dtype::u16: return function.template operator()<uint16_t>();
    case Dtype::u32: return function.template operator()<uint32_t>();
    case Dtype::u64: return function.template operator()<uint64_t>();
    case Dtype::f16: return function.template operator()<Float16>();
    case Dtype::bf16: return function.template operator()<BFloat16>();
    case Dtype::f32: return function.template operator()<float>();
    case Dtype::f64: return function.template operator()<double>();
    case Dtype::boolean: return function.template operator()<bool>();
    case Dtype::c64: return function.template operator()<std::complex<float>>();
    case Dtype::c128: return function.template operator()<std::complex<double>>();
    case Dtype::c32:
    case Dtype::f8_e4m3fn:
    case Dtype::f8_e5m2:
    case Dtype::f8_e4m3fnuz:
    case Dtype::f8_e5m2fnuz: break;
  }
  throw_error(ErrorKind::unsupported, "elements of type ", dtype_name(dtype), " have no C++ type here.");
}

// A dense copy in another dtype. Real numbers only: to a float type every value rounds to nearest; to an integer type
// values are truncated and must fit, to bool they become value != 0. Throws unsupported for complex types,
// invalid_input for a value that does not fit.
Array cast_array(const TensorView& view, Dtype dtype);

}  // namespace lissome

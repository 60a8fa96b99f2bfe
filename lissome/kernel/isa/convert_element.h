// One element of any dtype that element-wise kernels know, from and to f32. Static: see split.h.
#pragma once

#include <cstdint>
#include <limits>

#include "lissome/base.h"

namespace lissome {
namespace {

inline float widen_bf16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  __builtin_memcpy(&value, &wide, 4);
  return value;
}

// Round to nearest even; NaN stays NaN.
inline uint16_t narrow_bf16(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, 4);
  if (value != value) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float widen_f16(uint16_t bits) {
  _Float16 half;
  __builtin_memcpy(&half, &bits, 2);
  return static_cast<float>(half);
}

inline uint16_t narrow_f16(float value) {
  const auto half = static_cast<_Float16>(value);
  uint16_t bits;
  __builtin_memcpy(&bits, &half, 2);
  return bits;
}

[[maybe_unused]] inline float read_element(Dtype dtype, const void* data, int64_t at) {
  switch (dtype) {
    case Dtype::u8: return static_cast<const uint8_t*>(data)[at];
    case Dtype::i8: return static_cast<const int8_t*>(data)[at];
    case Dtype::i32: return static_cast<float>(static_cast<const int32_t*>(data)[at]);
    case Dtype::i64: return static_cast<float>(static_cast<const int64_t*>(data)[at]);
    case Dtype::boolean: return static_cast<const uint8_t*>(data)[at] != 0 ? 1.0f : 0.0f;
    case Dtype::bf16: return widen_bf16(static_cast<const uint16_t*>(data)[at]);
    case Dtype::f16: return widen_f16(static_cast<const uint16_t*>(data)[at]);
    default: return static_cast<const float*>(data)[at];
  }
}

// As the processor does, and not by chance: what does not fit, NaN too, becomes the smallest integer.
template <typename Integer>
Integer truncate_to(float value) {
  constexpr Integer kLeast = std::numeric_limits<Integer>::min();
  const auto limit = -static_cast<float>(kLeast);
  return value >= -limit && value < limit ? static_cast<Integer>(value) : kLeast;
}

[[maybe_unused]] inline void write_element(Dtype dtype, void* data, int64_t at, float value) {
  switch (dtype) {
    case Dtype::u8: static_cast<uint8_t*>(data)[at] = static_cast<uint8_t>(truncate_to<int64_t>(value)); break;
    case Dtype::i8: static_cast<int8_t*>(data)[at] = static_cast<int8_t>(truncate_to<int64_t>(value)); break;
    case Dtype::i32: static_cast<int32_t*>(data)[at] = truncate_to<int32_t>(value); break;
    case Dtype::i64: static_cast<int64_t*>(data)[at] = truncate_to<int64_t>(value); break;
    case Dtype::boolean: static_cast<uint8_t*>(data)[at] = value != 0 ? 1 : 0; break;
    case Dtype::bf16: static_cast<uint16_t*>(data)[at] = narrow_bf16(value); break;
    case Dtype::f16: static_cast<uint16_t*>(data)[at] = narrow_f16(value); break;
    default: static_cast<float*>(data)[at] = value; break;
  }
}

}  // namespace
}  // namespace lissome

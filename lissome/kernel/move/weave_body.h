// Copies that put the elements of two rows beside each other by turns, as where the channels of an image are shuffled.
#pragma once

#include <immintrin.h>

#include "lissome/kernel/isa/vector.h"
#include "lissome/kernel/move/copy_planes.h"

namespace lissome {
namespace {

template <typename T>
LISSOME_INLINE __m256i weave_low(__m256i a, __m256i b) {
  if constexpr (sizeof(T) == 1) return _mm256_unpacklo_epi8(a, b);
  if constexpr (sizeof(T) == 2) return _mm256_unpacklo_epi16(a, b);
  return _mm256_unpacklo_epi32(a, b);
}

template <typename T>
LISSOME_INLINE __m256i weave_high(__m256i a, __m256i b) {
  if constexpr (sizeof(T) == 1) return _mm256_unpackhi_epi8(a, b);
  if constexpr (sizeof(T) == 2) return _mm256_unpackhi_epi16(a, b);
  return _mm256_unpackhi_epi32(a, b);
}

// y = a[0], b[0], a[1], b[1], ...
template <typename T>
LISSOME_INLINE void weave_pairs(const T* a, const T* b, T* y, int64_t count) {
  constexpr int64_t kWidth = 32 / sizeof(T);
  int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    const __m256i left = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i));
    const __m256i right = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + i));
    // Each half of a register weaves its own elements.
    const __m256i low = weave_low<T>(left, right), high = weave_high<T>(left, right);
    auto* const to = reinterpret_cast<__m256i*>(y + 2 * i);
    _mm256_storeu_si256(to, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(low, high, 0x31));
  }
  for (; i < count; ++i) y[2 * i] = a[i], y[2 * i + 1] = b[i];
}

template <typename T>
bool weaves_pairs(const CopyPlane<T>& p) {
  return p.columns == 2 && p.x_row == 1 && p.y_column == 1 && p.y_row == 2;
}

}  // namespace
}  // namespace lissome

// The first lanes of eight f32, without a mask.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace lissome {
namespace {

// The first `count & 7` lanes.
inline void store_below_eight(float* p, __m256 a, int64_t count) {
  __m128 part = _mm256_castps256_ps128(a);
  if (count & 4) {
    _mm_storeu_ps(p, part);
    part = _mm256_extractf128_ps(a, 1), p += 4;
  }
  if (count & 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(p), part);
    part = _mm_movehl_ps(part, part), p += 2;
  }
  if (count & 1) _mm_store_ss(p, part);
}

}  // namespace
}  // namespace lissome

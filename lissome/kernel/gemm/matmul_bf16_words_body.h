// What a bf16 matmul multiplies, over Floats: words of four bytes. With AVX-512 BF16 a word is a pair of bf16,
// neighbours along the sum; elsewhere it is one f32 that holds a bf16. Operands of bf16 or f32, in any order, become
// words here.
#pragma once

#include "lissome/kernel/isa/vector_bf16.h"

#include "lissome/kernel/gemm/linear_f32.h"
#include "lissome/kernel/isa/convert_element.h"
#include "lissome/kernel/move/transpose_body.h"

namespace lissome {
namespace {

#ifdef __AVX512BF16__
constexpr int64_t kWordDepth = 2;  // products of a sum in a word

LISSOME_INLINE Floats as_floats(__m512i words) { return {_mm512_castsi512_ps(words)}; }
LISSOME_INLINE Floats as_floats(__m512bh words) { return as_floats(reinterpret_cast<__m512i>(words)); }

LISSOME_INLINE Floats add_word_products(Floats a, Floats b, Floats sums) {
  return {_mm512_dpbf16_ps(sums.v, reinterpret_cast<__m512bh>(a.v), reinterpret_cast<__m512bh>(b.v))};
}

// Words of neighbours along the sum, of which `left` are there: zeros behind them.
LISSOME_INLINE Floats words_along(const uint16_t* p, int64_t left) {
  if (left >= 32) return as_floats(_mm512_loadu_si512(p));
  return as_floats(_mm512_maskz_loadu_epi16(static_cast<__mmask32>((uint64_t{1} << left) - 1), p));
}
LISSOME_INLINE Floats words_along(const float* p, int64_t left) {
  const Floats low = left >= 16 ? load(p) : load_first(p, left);
  const Floats high = left >= 32 ? load(p + 16) : left > 16 ? load_first(p + 16, left - 16) : zeros();
  return as_floats(_mm512_cvtne2ps_pbh(high.v, low.v));
}

// low[0], high[0], low[1], ... of halves that lie one behind the other.
LISSOME_INLINE Floats interleave_halves(__m512i halves) {
  const __m512i low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(halves));
  const __m512i high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(halves, 1));
  return as_floats(_mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
}
LISSOME_INLINE __m256i load_halves(const uint16_t* p, int64_t count) {
  return count >= 16 ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))
                     : _mm256_maskz_loadu_epi16(first_lanes(count), p);
}
// Words of the first `count` rows or outputs that are neighbours in memory; `stride` is that along the sum, of which
// `left` are there.
LISSOME_INLINE Floats words_across(const uint16_t* p, int64_t stride, int64_t left, int64_t count) {
  const __m256i low = load_halves(p, count);
  const __m256i high = left > 1 ? load_halves(p + stride, count) : _mm256_setzero_si256();
  return interleave_halves(_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
}
LISSOME_INLINE Floats words_across(const float* p, int64_t stride, int64_t left, int64_t count) {
  const bool whole = count >= 16;
  const Floats low = whole ? load(p) : load_first(p, count);
  const Floats high = left <= 1 ? zeros() : whole ? load(p + stride) : load_first(p + stride, count);
  return interleave_halves(reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high.v, low.v)));
}

LISSOME_INLINE float make_word(uint16_t low, uint16_t high) {
  const uint32_t bits = low | static_cast<uint32_t>(high) << 16;
  float word;
  __builtin_memcpy(&word, &bits, 4);
  return word;
}
inline uint16_t bits_of(uint16_t value) { return value; }
inline uint16_t bits_of(float value) { return narrow_bf16(value); }
// One word, of any order.
template <typename T>
LISSOME_INLINE float one_word(const T* p, int64_t stride, int64_t left) {
  return make_word(bits_of(p[0]), left > 1 ? bits_of(p[stride]) : uint16_t{0});
}
#else
constexpr int64_t kWordDepth = 1;

LISSOME_INLINE Floats add_word_products(Floats a, Floats b, Floats sums) { return multiply_add(a, b, sums); }

LISSOME_INLINE Floats load_count(const uint16_t* p, int64_t count) {
  return count >= Floats::kWidth ? load(p) : load_first(p, count);
}
LISSOME_INLINE Floats load_count(const float* p, int64_t count) {
  return widen_lanes(narrow_lanes(count >= Floats::kWidth ? load(p) : load_first(p, count)));
}
template <typename T>
LISSOME_INLINE Floats words_along(const T* p, int64_t left) {
  return load_count(p, left);
}
template <typename T>
LISSOME_INLINE Floats words_across(const T* p, int64_t, int64_t, int64_t count) {
  return load_count(p, count);
}
inline float one_word(const uint16_t* p, int64_t, int64_t) { return widen_bf16(*p); }
inline float one_word(const float* p, int64_t, int64_t) { return widen_bf16(narrow_bf16(*p)); }
#endif

// Part of an operand: `count` rows of a, or outputs of b, and `inner` products of their sums.
template <typename T>
struct WordSource {
  const T* first;
  int64_t stride, inner_stride;  // from row to row, or output to output; along the sum
  int64_t count, inner;
  int64_t words() const { return (inner + kWordDepth - 1) / kWordDepth; }
  LISSOME_INLINE const T* at(int64_t i, int64_t word) const {
    return first + i * stride + word * kWordDepth * inner_stride;
  }
  int64_t left(int64_t word) const { return inner - word * kWordDepth; }
};

// A square of words, lines along the sum: line i is row or output `i` from `word` on. Zeros where there is nothing.
template <typename T>
LISSOME_INLINE void load_square(const WordSource<T>& from, int64_t i, int64_t word, Floats (&lines)[Floats::kWidth]) {
#pragma GCC unroll 16
  for (int64_t line = 0; line < Floats::kWidth; ++line) {
    lines[line] = i + line < from.count ? words_along(from.at(i + line, word), from.left(word)) : zeros();
  }
}
// The same of an operand whose rows or outputs are neighbours: lines across, one for each word.
template <typename T>
LISSOME_INLINE void load_square_across(const WordSource<T>& from, int64_t i, int64_t word,
                                       Floats (&lines)[Floats::kWidth]) {
  const int64_t words = from.words();
#pragma GCC unroll 16
  for (int64_t line = 0; line < Floats::kWidth; ++line) {
    const int64_t at = word + line;
    // The next square along the sum: too far away for the processor to guess.
    for (int64_t k = 0; k < kWordDepth; ++k) {
      _mm_prefetch(reinterpret_cast<const char*>(from.at(i, at + Floats::kWidth) + k * from.inner_stride), _MM_HINT_T1);
    }
    lines[line] = at < words ? words_across(from.at(i, at), from.inner_stride, from.left(at), from.count - i) : zeros();
  }
}

// to[row][word], rows `stride` words apart, which whole registers fit into.
template <typename T>
void lay_rows(const WordSource<T>& from, float* to, int64_t stride) {
  constexpr int64_t kWidth = Floats::kWidth;
  const int64_t words = from.words();
  if (from.inner_stride == 1) {
    for (int64_t i = 0; i < from.count; ++i) {
      for (int64_t w = 0; w < words; w += kWidth) store(to + i * stride + w, words_along(from.at(i, w), from.left(w)));
    }
  } else if (from.stride == 1) {
    // Along the rows first: what lies one row of memory further is often in another page.
    for (int64_t w = 0; w < words; w += kWidth) {
      for (int64_t i = 0; i < from.count; i += kWidth) {
        const int64_t rows = from.count - i < kWidth ? from.count - i : kWidth;
        Floats lines[kWidth];
        load_square_across(from, i, w, lines);
        transpose(lines);
        for (int64_t row = 0; row < rows; ++row) store(to + (i + row) * stride + w, lines[row]);
      }
    }
  } else {
    for (int64_t i = 0; i < from.count; ++i) {
      for (int64_t w = 0; w < words; ++w) {
        to[i * stride + w] = one_word(from.at(i, w), from.inner_stride, from.left(w));
      }
    }
  }
}

// to[word][output], kLinearPanel outputs; zeros for those that are missing.
template <typename T>
void lay_panel(const WordSource<T>& from, float* to) {
  constexpr int64_t kWidth = Floats::kWidth;
  const int64_t words = from.words();
  for (int64_t n = 0; n < kLinearPanel; n += kWidth) {
    if (n >= from.count) {
      for (int64_t w = 0; w < words; ++w) store(to + w * kLinearPanel + n, zeros());
    } else if (from.inner_stride == 1) {
      for (int64_t w = 0; w < words; w += kWidth) {
        Floats lines[kWidth];
        load_square(from, n, w, lines);
        transpose(lines);
        const int64_t count = words - w < kWidth ? words - w : kWidth;
        for (int64_t line = 0; line < count; ++line) store(to + (w + line) * kLinearPanel + n, lines[line]);
      }
    } else {
      for (int64_t w = 0; w < words; ++w) {
        float* line = to + w * kLinearPanel + n;
        if (from.stride == 1) {
          store(line, words_across(from.at(n, w), from.inner_stride, from.left(w), from.count - n));
          continue;
        }
        for (int64_t i = 0; i < kWidth; ++i) {
          line[i] = n + i < from.count ? one_word(from.at(n + i, w), from.inner_stride, from.left(w)) : 0;
        }
      }
    }
  }
}

}  // namespace
}  // namespace lissome

// Dropout whose random numbers are counted, not drawn: element i of a stream gets the same number for the same seed,
// whatever the threads, so that the backward pass, or a forward pass done again, needs no mask in memory.
// y[i] = x[i] * (number(seed, stream, i) < threshold ? scale : 0); so NaN and infinity stay NaN, as in a product with a
// mask.
//
// Numbers come from Philox4x32-7 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"; 7 rounds pass
// BigCrush). The key is the seed; counter (j, stream) gives the four numbers of elements
//   j / 16 * 64 + {0, 16, 32, 48} + j % 16.
#pragma once

#include <cstdint>

namespace lissome {

inline constexpr int64_t kDropoutBlock = 64;  // elements of 16 counters

template <typename T>
struct DropoutCallOf {
  const T* x = nullptr;           // [count]
  const int64_t* seed = nullptr;  // one number
  T* y = nullptr;                 // [count]; may be x
  int64_t count = 0;
  uint64_t stream = 0;
  uint32_t threshold = 0;
  float scale = 1;
};
using DropoutCall = DropoutCallOf<float>;
using DropoutBf16Call = DropoutCallOf<uint16_t>;  // bf16

struct PhiloxRound {
  uint32_t multiply0, multiply1, add0, add1;
};
inline constexpr PhiloxRound kPhilox = {0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85};
inline constexpr int kPhiloxRounds = 7;

// Numbers below it keep an element: as near to keep * 2^32 as there is.
uint32_t dropout_threshold(double keep);
// The numbers of a block: elements block * 64 to block * 64 + 63.
void fill_dropout_numbers(uint64_t seed, uint64_t stream, uint64_t block, uint32_t (&numbers)[kDropoutBlock]);

}  // namespace lissome

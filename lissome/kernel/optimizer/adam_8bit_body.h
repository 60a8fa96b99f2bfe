// Adam with states of one byte over Floats: bytes are widened by a table, and narrowed by finding the bin of each
// decade and keeping that of the highest one reached.
#pragma once

#include "lissome/kernel/optimizer/adam_8bit.h"
#include "lissome/kernel/optimizer/optimizer_body.h"

namespace lissome {
namespace {

// Of magnitudes in 0..1, as whole floats. Zero for NaN.
LISSOME_INLINE Floats find_bins(Floats magnitude, int shift) {
  Floats bin = zeros();
  float decade = 1e-6f;
  for (int d = 0; d < kDecades; ++d, decade *= 10) {
    const float bins = static_cast<float>(1 << (d + shift));
    const Floats place = multiply_add(magnitude, fill(bins / (0.9f * decade)), fill(-bins / 9));
    const Floats found = fill(bins) + min_with(fill(bins - 1), max_with(zeros(), round_down(place)));
    bin = select_negative(magnitude - fill(decade / 10), bin, found);
  }
  return max_with(bin, zeros());
}

LISSOME_INLINE float find_largest_magnitude(const float* values) {
  Floats largest = zeros();
  for (int64_t i = 0; i < kByteBlock; i += Floats::kWidth) {
    largest = max_with(largest, absolute_value(load(values + i)));
  }
  return max_lanes(largest);
}

// `values` has a whole block; what is beyond its end is zero.
LISSOME_INLINE float narrow_mean(const float* values, int64_t size, uint8_t* bytes) {
  const float largest = find_largest_magnitude(values);
  const Floats factor = fill(largest > 0 ? 1 / largest : 0);
  alignas(64) float bins[kByteBlock];
  for (int64_t i = 0; i < kByteBlock; i += Floats::kWidth) {
    store(bins + i, find_bins(absolute_value(load(values + i)) * factor, 0));
  }
  for (int64_t i = 0; i < size; ++i) {
    const int bin = static_cast<int>(bins[i]);
    bytes[i] = static_cast<uint8_t>(values[i] < 0 && bin > 0 ? bin + 128 : bin);
    if (values[i] == largest && largest > 0) bytes[i] = 128;
  }
  return largest;
}

LISSOME_INLINE float narrow_square(const float* values, int64_t size, uint8_t* bytes) {
  const float largest = find_largest_magnitude(values);
  const Floats factor = fill(largest > 0 ? 1 / largest : 0);
  alignas(64) float bins[kByteBlock];
  for (int64_t i = 0; i < kByteBlock; i += Floats::kWidth) {
    // Never zero for what is not: a mean over a square root of zero would be a huge step.
    const Floats value = load(values + i), least = select_negative(zeros() - value, fill(2), zeros());
    store(bins + i, max_with(least, find_bins(value * factor, 1)));
  }
  for (int64_t i = 0; i < size; ++i) {
    bytes[i] = values[i] == largest && largest > 0 ? 1 : static_cast<uint8_t>(static_cast<int>(bins[i]));
  }
  return largest;
}

LISSOME_INLINE void run_adam_8bit(const Adam8BitCall& call, int part, int parts) {
  const int64_t count = call.adam.on.count;
  const Range mine = split_evenly((count + kByteBlock - 1) / kByteBlock, part, parts);
  alignas(64) float mean[kByteBlock] = {}, square[kByteBlock] = {};
  for (int64_t block = mine.begin; block < mine.end; ++block) {
    const int64_t at = block * kByteBlock, size = count - at < kByteBlock ? count - at : kByteBlock;
    for (int64_t i = 0; i < kByteBlock; ++i) {
      mean[i] = i < size ? kMeanValues.of[call.mean[at + i]] * call.mean_scale[block] : 0;
      square[i] = i < size ? kSquareValues.of[call.square[at + i]] * call.square_scale[block] : 0;
    }
    run_adam(adam_on_block(call, at, size, mean, square), 0, 1);
    call.mean_scale[block] = narrow_mean(mean, size, call.mean + at);
    call.square_scale[block] = narrow_square(square, size, call.square + at);
  }
}

}  // namespace
}  // namespace lissome

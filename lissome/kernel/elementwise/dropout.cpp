// The portable form.
#include "lissome/kernel/elementwise/dropout.h"

#include <algorithm>

#include "lissome/kernel/elementwise/kernel_versions.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/convert_element.h"

namespace lissome {
namespace {

void run_philox(uint32_t (&c)[4], uint64_t seed) {
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int i = 0; i < kPhiloxRounds; ++i) {
    const uint64_t a = uint64_t{kPhilox.multiply0} * c[0], b = uint64_t{kPhilox.multiply1} * c[2];
    c[0] = static_cast<uint32_t>(b >> 32) ^ c[1] ^ key0;
    c[1] = static_cast<uint32_t>(b);
    c[2] = static_cast<uint32_t>(a >> 32) ^ c[3] ^ key1;
    c[3] = static_cast<uint32_t>(a);
    key0 += kPhilox.add0, key1 += kPhilox.add1;
  }
}

float to_float(float x) { return x; }
float to_float(uint16_t x) { return widen_bf16(x); }
void put(float* y, float x) { *y = x; }
void put(uint16_t* y, float x) { *y = narrow_bf16(x); }

template <typename T>
void run_dropout(const DropoutCallOf<T>& call, int part, int parts) {
  const Range range = split_by_unit(call.count, kDropoutBlock, part, parts);
  uint32_t numbers[kDropoutBlock];
  for (int64_t i = range.begin; i < range.end; i += kDropoutBlock) {
    fill_dropout_numbers(static_cast<uint64_t>(*call.seed), call.stream, static_cast<uint64_t>(i / kDropoutBlock),
                         numbers);
    for (int64_t j = 0; j < std::min(kDropoutBlock, range.end - i); ++j) {
      put(call.y + i + j, to_float(call.x[i + j]) * (numbers[j] < call.threshold ? call.scale : 0));
    }
  }
}

}  // namespace

uint32_t dropout_threshold(double keep) {
  return static_cast<uint32_t>(std::clamp(keep * 4294967296.0, 0.0, 4294967295.0));
}

void fill_dropout_numbers(uint64_t seed, uint64_t stream, uint64_t block, uint32_t (&numbers)[kDropoutBlock]) {
  for (uint32_t lane = 0; lane < 16; ++lane) {
    const uint64_t counter = block * 16 + lane;
    uint32_t c[4] = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                     static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
    run_philox(c, seed);
    for (uint32_t word = 0; word < 4; ++word) numbers[word * 16 + lane] = c[word];
  }
}

void dropout_portable(const DropoutCall& call, int part, int parts) { run_dropout(call, part, parts); }
void dropout_bf16_portable(const DropoutBf16Call& call, int part, int parts) { run_dropout(call, part, parts); }

}  // namespace lissome

#include "tests/fuzz/filled_array.h"

#include <complex>
#include <cstdlib>
#include <limits>

#include "lissome/base/dispatch.h"
#include "tests/fuzz/random.h"

namespace lissome {
namespace {

constexpr double kHostileNumbers[] = {std::numeric_limits<double>::quiet_NaN(),
                                      std::numeric_limits<double>::infinity(),
                                      -std::numeric_limits<double>::infinity(),
                                      3e38,
                                      -3e38,
                                      1e-40,
                                      -0.0,
                                      1e11};
constexpr int64_t kHostileIntegers[] = {-1, INT64_MIN, INT64_MAX, int64_t{1} << 32, 100'000'000'000, -17, 1000, 127};

template <typename T>
T make_number(double floating, int64_t integer) {
  if constexpr (std::is_same_v<T, std::complex<float>>) {
    return {static_cast<float>(floating), 1};
  } else if constexpr (std::is_same_v<T, std::complex<double>>) {
    return {floating, 1};
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(integer);
  } else {
    return T(static_cast<float>(floating));
  }
}

// Number i of an array filled in this way.
template <typename T>
T make_element(uint64_t fill, FuzzRandom& random) {
  const auto bits = random.next();
  const double unit = static_cast<double>(bits >> 40) / (1 << 23) - 1;
  switch (fill % 8) {
    case 0: return make_number<T>(unit, static_cast<int64_t>(bits % 2));
    case 1: return make_number<T>(unit / 8, static_cast<int64_t>(bits % 4));
    case 2: return make_number<T>(unit, static_cast<int64_t>(bits % 4) - 1);
    case 3: return make_number<T>(unit * 8, static_cast<int64_t>(bits % 16));
    case 6: return make_number<T>(kHostileNumbers[bits % 8], kHostileIntegers[bits % 8]);
    case 7:
      return bits % 16 == 0 ? make_number<T>(kHostileNumbers[bits >> 8 & 7], kHostileIntegers[bits >> 8 & 7])
                            : make_number<T>(unit, static_cast<int64_t>(bits % 2));
    default: return T{};
  }
}

void fill_bytes(std::byte* to, int64_t bytes, FuzzRandom& random) {
  for (int64_t i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(random.next());
}

}  // namespace

Array make_filled(const FilledArray& wanted) {
  Array array{wanted.dtype, wanted.sizes, nullptr};
  const int64_t bytes = array.bytes();
  void* memory = nullptr;
  if (posix_memalign(&memory, 64, static_cast<size_t>(bytes)) != 0) std::abort();
  array.storage = std::shared_ptr<void>(memory, std::free);
  FuzzRandom random(wanted.fill);
  const bool has_type = wanted.dtype < Dtype::f8_e4m3fn && wanted.dtype != Dtype::c32 && wanted.dtype != Dtype::boolean;
  if (wanted.fill % 8 == 4 || (!has_type && wanted.dtype != Dtype::boolean)) {
    fill_bytes(static_cast<std::byte*>(memory), bytes, random);
    return array;
  }
  if (wanted.dtype == Dtype::boolean) {
    for (int64_t i = 0; i < bytes; ++i) static_cast<uint8_t*>(memory)[i] = random.next() % 2;
    return array;
  }
  dispatch(wanted.dtype, [&]<typename T>() {
    auto* numbers = static_cast<T*>(memory);
    const int64_t elements = array.elements();
    for (int64_t i = 0; i < elements; ++i) numbers[i] = make_element<T>(wanted.fill, random);
  });
  return array;
}

}  // namespace lissome

#include "lissome/kernel/elementwise/dropout.h"

#include <array>
#include <cmath>

#include "lissome/kernel/gemm/row_check.h"

using namespace lissome;

TEST_CASE("numbers are Philox's, of seven rounds") {
  const auto philox = [](std::array<uint32_t, 4> c, std::array<uint32_t, 2> key, int rounds) {
    for (int i = 0; i < rounds; ++i) {
      const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
      c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(b),
           static_cast<uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(a)};
      key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
    }
    return c;
  };
  // The known answer of its authors (kat_vectors of Random123), ten rounds.
  CHECK(philox({0, 0, 0, 0}, {0, 0}, 10) == std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  uint32_t numbers[kDropoutBlock];
  fill_dropout_numbers(0x1234567890abcdef, 0x55, uint64_t{1} << 30, numbers);
  const auto wanted = philox({3, 4, 0x55, 0}, {0x90abcdef, 0x12345678}, 7);  // 2^30 * 16 + 3
  for (size_t word = 0; word < 4; ++word) CHECK(numbers[word * 16 + 3] == wanted[word]);
}

TEST_CASE("dropout keeps and scales the same elements in every form") {
  TestNumbers numbers(3);
  for (const int64_t count : {1, 15, 16, 63, 64, 65, 1000, 4097}) {
    DropoutCall call;
    auto x = numbers.reals(count);
    x[0] = INFINITY, x[static_cast<size_t>(count) / 2] = std::nanf("");
    const int64_t seed = int64_t{-77} << 20;
    call.x = x.data(), call.seed = &seed, call.count = count, call.stream = 5;
    call.threshold = dropout_threshold(0.7), call.scale = 1 / 0.7f;
    check_rows("dropout", call, count, 0, [](DropoutCall& filled, float* y) { filled.y = y; });
  }
}

TEST_CASE("dropout in bf16 is the f32 one of rounded numbers") {
  TestNumbers numbers(4);
  constexpr int64_t kCount = 777;
  std::vector<uint16_t> x(kCount), y(kCount), wanted(kCount);
  for (uint16_t& value : x) value = static_cast<uint16_t>(numbers.between(0x3f00, 0x4100));
  const int64_t seed = 9;
  DropoutBf16Call call{.x = x.data(), .seed = &seed, .count = kCount, .stream = 1};
  call.threshold = dropout_threshold(0.5), call.scale = 2;
  const auto rows = kernel_rows("dropout_bf16");
  call.y = wanted.data();
  rows.back().function(&call, 0, 1);
  call.y = y.data();
  for (const KernelRow& row : rows) {
    if (!can_run(row.isa)) continue;
    for (int part = 0; part < 3; ++part) row.function(&call, part, 3);
    CHECK(y == wanted);
  }
}

TEST_CASE("as many elements stay as are asked for, and neighbours do not follow each other") {
  constexpr int64_t kCount = 1 << 20;
  const std::vector<float> ones(kCount, 1.0f);
  std::vector<float> y(kCount), other(kCount);
  const int64_t seed = 12345;
  DropoutCall call{.x = ones.data(), .seed = &seed, .y = y.data(), .count = kCount, .stream = 1};
  call.threshold = dropout_threshold(0.9), call.scale = 1;
  find_kernel("dropout").function(&call, 0, 1);
  call.stream = 2, call.y = other.data();
  find_kernel("dropout").function(&call, 0, 1);
  double kept = 0, pairs = 0, rows = 0, both = 0;
  for (size_t i = 64; i < y.size(); ++i) {
    kept += y[i], pairs += y[i] * y[i - 1], rows += y[i] * y[i - 16], both += y[i] * other[i];
  }
  const double count = kCount - 64;
  // Five standard deviations: of 0.9, and of 0.81 (whose terms overlap).
  CHECK(kept / count == doctest::Approx(0.9).epsilon(5 * 0.3 / std::sqrt(count)));
  for (const double product : {pairs, rows, both})
    CHECK(product / count == doctest::Approx(0.81).epsilon(10 * 0.4 / std::sqrt(count)));
}

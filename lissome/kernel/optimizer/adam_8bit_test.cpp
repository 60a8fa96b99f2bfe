#include "lissome/kernel/optimizer/adam_8bit.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lissome/kernel/kernel_table.h"
#include "lissome/kernel/test_arrays.h"

using namespace lissome;

namespace {

struct BytesArrays {
  std::vector<float> weight, gradient, mean_scale, square_scale;
  std::vector<uint8_t> mean, square;

  // Gradients over six decades, some of them zeros.
  BytesArrays(TestNumbers& numbers, int64_t count) : weight(numbers.reals(count)), gradient(numbers.reals(count)) {
    const auto size = static_cast<size_t>(count), blocks = static_cast<size_t>((count + kByteBlock - 1) / kByteBlock);
    mean.resize(size), square.resize(size), mean_scale.resize(blocks), square_scale.resize(blocks);
    for (float& value : gradient) {
      value *= std::pow(10.0f, static_cast<float>(-numbers.between(0, 6)));
      if (numbers.between(0, 9) == 0) value = 0;
    }
  }
  Adam8BitCall call() {
    Adam8BitCall call{{.on = {weight.data(), gradient.data(), nullptr, static_cast<int64_t>(weight.size()), 1}},
                      mean.data(),
                      square.data(),
                      mean_scale.data(),
                      square_scale.data()};
    call.adam.beta1 = 0.5, call.adam.beta2 = 0.75, call.adam.step_size = 0.01, call.adam.epsilon = 1e-8;
    return call;
  }
};

// How far the middle of a bin may be from what is in it, as a share of the block's largest.
double half_bin(double share, int shift) {
  double decade = 1;
  int d = kDecades - 1;
  while (d > 0 && share < decade / 10) decade /= 10, --d;
  return 0.45 * decade / (1 << (d + shift)) * 1.001;
}

}  // namespace

TEST_CASE("a byte stands for a number within its bin") {
  CHECK(kMeanValues.of[0] == 0);
  CHECK(kMeanValues.of[128] == 1);
  CHECK(kMeanValues.of[1] == 0.55e-6f);
  CHECK(kMeanValues.of[127 + 128] == -kMeanValues.of[127]);
  CHECK(kSquareValues.of[255] == doctest::Approx(1 - 0.45 / 128));
  CHECK(std::is_sorted(kSquareValues.of + 2, kSquareValues.of + 256));
}

TEST_CASE("adam_8bit updates as adam does, and keeps its states within half a bin") {
  TestNumbers numbers(51);
  for (const int64_t count : {1, 7, 255, 256, 257, 1000, 4099}) {
    const BytesArrays arrays(numbers, count);
    for (const KernelRow& row : kernel_rows("adam_8bit")) {
      if (!can_run(row.isa)) continue;
      for (const int parts : {1, 2, 5}) {
        CAPTURE(isa_name(row.isa));
        BytesArrays own = arrays;
        const Adam8BitCall call = own.call();
        for (int step = 0; step < 3; ++step) {
          std::vector<float> weight = own.weight, mean(own.weight.size()), square(own.weight.size());
          for (size_t i = 0; i < mean.size(); ++i) {
            mean[i] = kMeanValues.of[own.mean[i]] * own.mean_scale[i / kByteBlock];
            square[i] = kSquareValues.of[own.square[i]] * own.square_scale[i / kByteBlock];
          }
          AdamCall exact = call.adam;
          exact.on.weight = weight.data(), exact.mean = mean.data(), exact.square = square.data();
          kernel_rows("adam").back().function(&exact, 0, 1);
          for (int part = 0; part < parts; ++part) row.function(&call, part, parts);
          CHECK(count_differences(own.weight, weight, 1e-6f) == 0);
          int64_t far = 0, vanished = 0;
          for (size_t i = 0; i < mean.size(); ++i) {
            const double mean_scale = static_cast<double>(own.mean_scale[i / kByteBlock]);
            const double square_scale = static_cast<double>(own.square_scale[i / kByteBlock]);
            const double mean_error = static_cast<double>(kMeanValues.of[own.mean[i]]) * mean_scale - mean[i];
            const double square_error = static_cast<double>(kSquareValues.of[own.square[i]]) * square_scale - square[i];
            far += std::fabs(mean_error) > mean_scale * half_bin(std::fabs(mean[i]) / mean_scale, 0);
            far +=
                std::fabs(square_error) > square_scale * half_bin(square[i] / square_scale, 1) + 0.55e-6 * square_scale;
            vanished += square[i] > 0 && own.square[i] == 0;
          }
          CHECK(far == 0);
          CHECK(vanished == 0);
        }
      }
    }
  }
}

TEST_CASE("adam_8bit leaves blocks without gradients at zero") {
  TestNumbers numbers(52);
  for (const KernelRow& row : kernel_rows("adam_8bit")) {
    if (!can_run(row.isa)) continue;
    BytesArrays arrays(numbers, 300);
    std::fill(arrays.gradient.begin() + 256, arrays.gradient.end(), 0.0f);
    const std::vector<float> before = arrays.weight;
    const Adam8BitCall call = arrays.call();
    row.function(&call, 0, 1);
    CHECK(arrays.mean_scale[1] == 0);
    CHECK(std::equal(before.begin() + 256, before.end(), arrays.weight.begin() + 256));
    CHECK(std::all_of(arrays.square.begin() + 256, arrays.square.end(), [](uint8_t byte) { return byte == 0; }));
  }
}

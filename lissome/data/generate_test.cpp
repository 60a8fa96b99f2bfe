#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>

#include "lissome/data.h"
#include "lissome/data/data_test_files.h"
#include "lissome/data/random.h"
#include "tests/expect_error.h"

using namespace lissome;

namespace {

Array generate(Dtype dtype, Sizes sizes, std::optional<std::pair<int64_t, int64_t>> range = std::nullopt,
               uint64_t seed = 0) {
  DataSignature input;
  input.name = "x";
  input.dtype = dtype;
  input.range = range;
  return generate_inputs({&input, 1}, {&sizes, 1}, seed)[0].array;
}

}  // namespace

TEST_CASE("floats are standard normal in every width") {
  for (Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
    const Array array = cast_array(generate(dtype, {20'000}).view(), Dtype::f64);
    const auto values = values_of<double>(array);
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / 20'000;
    const double square = std::inner_product(values.begin(), values.end(), values.begin(), 0.0) / 20'000;
    CHECK(std::abs(mean) < 0.03);
    CHECK(square == doctest::Approx(1).epsilon(0.05));
  }
  CHECK(std::isfinite(generate(Dtype::c64, {4}).data<std::complex<float>>()[3].imag()));
}

TEST_CASE("integers stay inside their range and reach its ends") {
  const auto tokens = values_of<int64_t>(generate(Dtype::i64, {10'000}, std::pair<int64_t, int64_t>(-2, 7)));
  CHECK(*std::min_element(tokens.begin(), tokens.end()) == -2);
  CHECK(*std::max_element(tokens.begin(), tokens.end()) == 7);
  const auto flags = values_of<int32_t>(generate(Dtype::i32, {1000}));
  CHECK(*std::min_element(flags.begin(), flags.end()) == 0);
  CHECK(*std::max_element(flags.begin(), flags.end()) == 1);
  const auto bytes = values_of<uint8_t>(generate(Dtype::u8, {10'000}));
  CHECK(*std::max_element(bytes.begin(), bytes.end()) == 255);
  const auto bools = values_of<uint8_t>(generate(Dtype::boolean, {1000}));
  CHECK(*std::max_element(bools.begin(), bools.end()) == 1);
  CHECK(generate(Dtype::i64, {1}, std::pair<int64_t, int64_t>(INT64_MIN, INT64_MAX)).elements() == 1);
  CHECK(generate(Dtype::i64, {1}, std::pair<int64_t, int64_t>(5, 5)).data<int64_t>()[0] == 5);
  EXPECT_ERROR(internal, generate(Dtype::i8, {1}, std::pair<int64_t, int64_t>(0, 1000)), "range", "'x'");
}

TEST_CASE("sizes and seeds count") {
  CHECK(generate(Dtype::f32, {4, 3, 7}).sizes == Sizes{4, 3, 7});
  CHECK(generate(Dtype::f32, {}).elements() == 1);
  CHECK(values_of<float>(generate(Dtype::f32, {8})) == values_of<float>(generate(Dtype::f32, {8})));
  CHECK(values_of<float>(generate(Dtype::f32, {8})) != values_of<float>(generate(Dtype::f32, {8}, std::nullopt, 1)));
}

TEST_CASE("random numbers are the same everywhere") {
  Random random(42);
  const uint64_t first = random.next();
  CHECK(first == Random(42).next());
  CHECK(first != Random(43).next());
  Random counter(1);
  std::vector<int> seen(6);
  for (int i = 0; i < 6000; ++i) ++seen[counter.next_below(6)];
  for (int count : seen) CHECK((count > 850 && count < 1150));
}

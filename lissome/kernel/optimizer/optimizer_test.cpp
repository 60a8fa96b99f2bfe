#include "lissome/kernel/optimizer/optimizer.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lissome/kernel/isa/convert_element.h"
#include "lissome/kernel/kernel_table.h"
#include "lissome/kernel/test_arrays.h"

using namespace lissome;

namespace {

constexpr int64_t kCounts[] = {1, 7, 8, 15, 16, 17, 31, 97, 1024, 40961};

// The arrays of one update; `run` lets a row work on copies.
struct UpdateArrays {
  std::vector<float> weight, gradient, first, second;
  std::vector<uint16_t> bf16_copy;

  UpdateArrays(TestNumbers& numbers, int64_t count)
      : weight(numbers.reals(count)),
        gradient(numbers.reals(count)),
        first(numbers.reals(count)),
        second(numbers.reals(count)),
        bf16_copy(static_cast<size_t>(count)) {
    for (float& value : second) value *= value;  // a mean of squares
  }
  UpdatedWeight on(double scale, bool copied) {
    return {weight.data(), gradient.data(), copied ? bf16_copy.data() : nullptr, static_cast<int64_t>(weight.size()),
            scale};
  }
};

void check_same(const UpdateArrays& seen, const UpdateArrays& wanted) {
  CHECK(count_differences(seen.weight, wanted.weight, 1e-6f) == 0);
  CHECK(count_differences(seen.first, wanted.first, 1e-6f) == 0);
  CHECK(count_differences(seen.second, wanted.second, 1e-6f) == 0);
}

// `make_call(arrays)` points a call at them. Every row gives what the portable one gives, in any number of parts.
template <typename MakeCall>
void check_update(std::string_view name, const UpdateArrays& arrays, bool copied, const MakeCall& make_call) {
  const auto rows = kernel_rows(name);
  const auto run = [&](const KernelRow& row, int parts) {
    UpdateArrays own = arrays;
    const auto call = make_call(own);
    for (int part = 0; part < parts; ++part) row.function(&call, part, parts);
    return own;
  };
  const UpdateArrays wanted = run(rows.back(), 1);
  for (const KernelRow& row : rows) {
    if (!can_run(row.isa)) continue;
    for (const int parts : {1, 2, 5}) {
      CAPTURE(isa_name(row.isa));
      CAPTURE(parts);
      const UpdateArrays seen = run(row, parts);
      check_same(seen, wanted);
      if (!copied) continue;
      for (size_t i = 0; i < seen.weight.size(); ++i) {
        if (seen.bf16_copy[i] != narrow_bf16(seen.weight[i])) FAIL("bf16 copy of ", seen.weight[i], " at ", i);
      }
    }
  }
}

AdamCall make_adam(UpdateArrays& arrays, bool decoupled) {
  AdamCall call{.on = arrays.on(0.25, decoupled), .mean = arrays.first.data(), .square = arrays.second.data()};
  call.beta1 = 0.9, call.beta2 = 0.999, call.step_size = 0.01, call.square_factor = 1.5, call.epsilon = 1e-8;
  (decoupled ? call.weight_factor : call.gradient_decay) = decoupled ? 0.99 : 0.01;
  return call;
}

// Put into gradients: what is no number, and what is hardly one.
void spoil(std::vector<float>& values) {
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity(),
                       0.0f,
                       1e-40f,
                       -0.0f};
  for (size_t i = 0; i < values.size(); i += 3) values[i] = bad[i / 3 % 6];
}

}  // namespace

TEST_CASE("adam agrees with the portable form") {
  TestNumbers numbers(41);
  for (const int64_t count : kCounts) {
    for (const bool decoupled : {false, true}) {
      UpdateArrays arrays(numbers, count);
      if (count == 97) spoil(arrays.gradient);
      check_update("adam", arrays, decoupled, [&](UpdateArrays& own) { return make_adam(own, decoupled); });
    }
  }
}

TEST_CASE("adam does one step as by hand") {
  for (const KernelRow& row : kernel_rows("adam")) {
    if (!can_run(row.isa)) continue;
    float weight = 2, gradient = 8, mean = 1, square = 4;
    AdamCall call{.on = {&weight, &gradient, nullptr, 1, 0.5}, .mean = &mean, .square = &square};
    call.weight_factor = 0.5, call.beta1 = 0.75, call.beta2 = 0.5, call.step_size = 2, call.epsilon = 1;
    row.function(&call, 0, 1);
    CHECK(mean == 1.75f);    // 1 + (4 - 1) / 4
    CHECK(square == 10.0f);  // 4 / 2 + 16 / 2
    CHECK(weight == doctest::Approx(1 - 2 * 1.75 / (std::sqrt(10.0) + 1)).epsilon(1e-6));
  }
}

TEST_CASE("sgd agrees with the portable form") {
  TestNumbers numbers(42);
  for (const int64_t count : kCounts) {
    for (const int form : {0, 1, 2}) {  // without momentum, with, and Nesterov's
      UpdateArrays arrays(numbers, count);
      if (count == 97) spoil(arrays.gradient);
      check_update("sgd", arrays, form == 1, [&](UpdateArrays& own) {
        SgdCall call{.on = own.on(0.5, form == 1), .momentum = form ? own.first.data() : nullptr};
        call.gradient_decay = 0.01, call.keep = 0.9, call.take = 0.8, call.learning_rate = 0.1;
        if (form == 2) call.gradient_share = 1, call.momentum_share = 0.9;
        return call;
      });
    }
  }
}

TEST_CASE("lion agrees with the portable form and does not move where there is no direction") {
  TestNumbers numbers(43);
  for (const int64_t count : kCounts) {
    UpdateArrays arrays(numbers, count);
    if (count == 97) spoil(arrays.gradient);
    arrays.gradient.back() = arrays.first.back() = 0;
    const auto make_call = [](UpdateArrays& own) {
      LionCall call{.on = own.on(2, true), .mean = own.first.data()};
      call.weight_factor = 0.5, call.beta1 = 0.9, call.beta2 = 0.99, call.learning_rate = 0.25;
      return call;
    };
    check_update("lion", arrays, true, make_call);
    for (const KernelRow& row : kernel_rows("lion")) {
      if (!can_run(row.isa)) continue;
      UpdateArrays own = arrays;
      const LionCall call = make_call(own);
      row.function(&call, 0, 1);
      CHECK(own.weight.back() == arrays.weight.back() / 2);
    }
  }
}

TEST_CASE("sum_squares is exact at any scale, whatever the parts, and tells what is not finite") {
  TestNumbers numbers(44);
  for (const int64_t count : {int64_t{1}, int64_t{17}, int64_t{97}, kSquareBlock, kSquareBlock * 3 + 5}) {
    for (const float scale : {1.0f, 1e30f, 1e-30f}) {
      auto x = numbers.reals(count);
      for (float& value : x) value *= scale;
      const size_t blocks = static_cast<size_t>((count + kSquareBlock - 1) / kSquareBlock);
      std::vector<double> wanted(blocks);
      SumSquaresCall call = {x.data(), wanted.data(), count};
      kernel_rows("sum_squares").back().function(&call, 0, 1);
      REQUIRE(wanted[0] > 0);
      for (const KernelRow& row : kernel_rows("sum_squares")) {
        if (!can_run(row.isa)) continue;
        for (const int parts : {1, 2, 5}) {
          std::vector<double> sums(blocks, -1);
          call.sums = sums.data();
          for (int part = 0; part < parts; ++part) row.function(&call, part, parts);
          for (size_t i = 0; i < blocks; ++i) CHECK(sums[i] == doctest::Approx(wanted[i]).epsilon(1e-13));
        }
      }
    }
  }
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    auto x = numbers.reals(kSquareBlock + 3);
    x.back() = bad;
    for (const KernelRow& row : kernel_rows("sum_squares")) {
      if (!can_run(row.isa)) continue;
      double sums[2];
      const SumSquaresCall call = {x.data(), sums, static_cast<int64_t>(x.size())};
      row.function(&call, 0, 1);
      CHECK(std::isfinite(sums[0]));
      CHECK(!std::isfinite(sums[1]));
    }
  }
}

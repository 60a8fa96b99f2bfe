#include "lissome/kernel/elementwise/reduce.h"

#include <cmath>
#include <limits>

#include "lissome/kernel/gemm/row_check.h"
#include "lissome/kernel/isa/bf16_arrays.h"

using namespace lissome;

TEST_CASE("cumulate adds up along the middle axis") {
  const std::vector<int64_t> x = {1, 2, 3, 4, 5, 6, INT64_MAX, 1};
  std::vector<int64_t> y(8);
  CumulateCall call;
  call.outer = 2, call.count = 2, call.inner = 2, call.integers = true;
  call.x = x.data(), call.y = y.data();
  for (int part = 0; part < 3; ++part) find_kernel("cumulate").function(&call, part, 3);
  CHECK(y == std::vector<int64_t>{1, 2, 4, 6, 5, 6, INT64_MIN + 4, 7});
}

TEST_CASE("reduce agrees with the portable form along and across rows") {
  TestNumbers numbers(3);
  for (const int64_t inner : {1, 5, 16, 40}) {
    for (const int64_t count : {1, 7, 33, 200}) {
      ReduceCall call;
      call.outer = 6, call.count = count, call.inner = inner;
      auto x = numbers.reals(call.outer * count * inner);
      x[x.size() / 2] = std::numeric_limits<float>::quiet_NaN();
      x[0] = -INFINITY;
      call.x = x.data();
      for (int reduction = 0; reduction < 5; ++reduction) {
        call.reduction = static_cast<Reduction>(reduction);
        check_rows("reduce", call, call.outer * inner, 1e-5f, [](ReduceCall& filled, float* y) { filled.y = y; });
      }
    }
  }
}

TEST_CASE("reduce_bf16 rounds what reduce gives for the same numbers") {
  TestNumbers numbers(4);
  for (const int64_t inner : {1, 5, 40}) {
    for (const int64_t count : {1, 33, 200}) {
      for (int reduction = 0; reduction < 5; ++reduction) {
        const auto x = make_bf16(numbers, 6 * count * inner);
        std::vector<float> wide, exact(static_cast<size_t>(6 * inner));
        for (const uint16_t value : x) wide.push_back(widen_bf16(value));
        ReduceCall judge;
        judge.x = wide.data(), judge.y = exact.data();
        judge.outer = 6, judge.count = count, judge.inner = inner, judge.reduction = static_cast<Reduction>(reduction);
        kernel_rows("reduce").back().function(&judge, 0, 1);
        for (const KernelRow& row : kernel_rows("reduce_bf16")) {
          if (!can_run(row.isa)) continue;
          std::vector<uint16_t> y(exact.size());
          ReduceBf16Call call;
          call.x = x.data(), call.y = y.data();
          call.outer = 6, call.count = count, call.inner = inner, call.reduction = judge.reduction;
          for (int part = 0; part < 2; ++part) row.function(&call, part, 2);
          for (size_t i = 0; i < y.size(); ++i) CHECK(is_rounded(y[i], exact[i], 1e-5f));
        }
      }
    }
  }
}

TEST_CASE("find_largest gives the first of the largest, and the first NaN") {
  TestNumbers numbers(3);
  for (const int64_t inner : {1, 5}) {
    for (const int64_t count : {1, 7, 200}) {
      ReduceCall call;
      call.outer = 6, call.count = count, call.inner = inner;
      auto x = numbers.reals(call.outer * count * inner);
      for (float& value : x) value = std::round(value * 4);
      x[x.size() / 2] = std::numeric_limits<float>::quiet_NaN();
      x[0] = -INFINITY;
      std::vector<int64_t> positions(static_cast<size_t>(call.outer * inner));
      call.x = x.data(), call.positions = positions.data();
      for (int part = 0; part < 3; ++part) find_kernel("find_largest").function(&call, part, 3);
      for (int64_t at = 0; at < call.outer * inner; ++at) {
        const auto value = [&](int64_t k) {
          return x[static_cast<size_t>(at / inner * count * inner + k * inner + at % inner)];
        };
        const int64_t seen = positions[static_cast<size_t>(at)];
        for (int64_t k = 0; k < count; ++k) {
          const bool before = std::isnan(value(k)) || (!std::isnan(value(seen)) && value(k) >= value(seen));
          if (k < seen) CHECK(!before);
          if (k > seen && !std::isnan(value(seen))) CHECK(value(k) <= value(seen));
        }
      }
    }
  }
}

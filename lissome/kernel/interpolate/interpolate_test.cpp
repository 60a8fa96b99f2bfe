#include "lissome/kernel/interpolate/interpolate.h"

#include "lissome/kernel/gemm/row_check.h"
#include "lissome/kernel/isa/bf16_arrays.h"

using namespace lissome;

TEST_CASE("interpolate agrees with the portable form") {
  TestNumbers numbers(41);
  for (int i = 0; i < 80; ++i) {
    InterpolateCall call;
    call.batch = numbers.between(1, 2), call.channels = numbers.between(1, 70);
    call.height = numbers.between(1, 9), call.width = numbers.between(1, 9);
    call.out_height = numbers.between(1, 20), call.out_width = numbers.between(1, 20);
    call.scale_height = static_cast<float>(call.height) / static_cast<float>(call.out_height);
    call.scale_width = static_cast<float>(call.width) / static_cast<float>(call.out_width);
    call.bilinear = i % 2 == 0, call.aligned_corners = i % 4 == 0;
    const auto x = numbers.reals(call.batch * call.height * call.width * call.channels);
    call.x = x.data();
    check_rows("interpolate", call, call.batch * call.out_height * call.out_width * call.channels, 1e-6f,
               [](InterpolateCall& filled, float* y) { filled.y = y; });
  }
}

TEST_CASE("interpolate_bf16 rounds what interpolate gives for the same numbers") {
  TestNumbers numbers(42);
  for (int i = 0; i < 40; ++i) {
    InterpolateBf16Call call;
    call.batch = 2, call.channels = numbers.between(1, 70);
    call.height = numbers.between(1, 9), call.width = numbers.between(1, 9);
    call.out_height = numbers.between(1, 20), call.out_width = numbers.between(1, 20);
    call.scale_height = static_cast<float>(call.height) / static_cast<float>(call.out_height);
    call.scale_width = static_cast<float>(call.width) / static_cast<float>(call.out_width);
    call.bilinear = i % 2 == 0, call.aligned_corners = i % 4 == 0;
    const auto x = make_bf16(numbers, call.batch * call.height * call.width * call.channels);
    std::vector<float> wide, exact(static_cast<size_t>(call.batch * call.out_height * call.out_width * call.channels));
    for (const uint16_t value : x) wide.push_back(widen_bf16(value));
    InterpolateCall judge;
    static_cast<InterpolateShape&>(judge) = call;
    judge.x = wide.data(), judge.y = exact.data();
    kernel_rows("interpolate").back().function(&judge, 0, 1);
    call.x = x.data();
    for (const KernelRow& row : kernel_rows("interpolate_bf16")) {
      if (!can_run(row.isa)) continue;
      std::vector<uint16_t> y(exact.size());
      call.y = y.data();
      for (int part = 0; part < 2; ++part) row.function(&call, part, 2);
      for (size_t k = 0; k < y.size(); ++k) CHECK(is_rounded(y[k], exact[k], 1e-6f));
    }
  }
}

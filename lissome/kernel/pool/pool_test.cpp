#include "lissome/kernel/pool/pool.h"

#include "lissome/kernel/conv/test_window.h"
#include "lissome/kernel/gemm/row_check.h"
#include "lissome/kernel/isa/bf16_arrays.h"

using namespace lissome;

namespace {

Window make_window(TestNumbers& numbers) {
  Window w;
  w.batch = numbers.between(1, 3), w.height = numbers.between(5, 12), w.width = numbers.between(5, 12);
  w.kernel_height = numbers.between(2, 4), w.kernel_width = numbers.between(2, 4);
  w.stride_height = numbers.between(1, 3), w.stride_width = numbers.between(1, 3);
  w.pad_height = numbers.between(0, 1), w.pad_width = numbers.between(0, 1);
  return finish_window(w);
}

PoolCall make_call(TestNumbers& numbers, int i) {
  PoolCall call;
  call.window = make_window(numbers);
  call.channels = numbers.between(1, 70);
  call.average = i % 2 == 0;
  call.counts_padding = i % 3 == 0;
  call.pad_bottom = call.window.pad_height, call.pad_right = call.window.pad_width;
  return call;
}

}  // namespace

TEST_CASE("pool_f32 agrees with the portable form") {
  TestNumbers numbers(5);
  for (int i = 0; i < 60; ++i) {
    PoolCall call = make_call(numbers, i);
    auto x = numbers.reals(call.window.batch * call.window.height * call.window.width * call.channels);
    x[x.size() / 2] = std::numeric_limits<float>::quiet_NaN();
    call.x = x.data();
    const int64_t count = call.window.batch * call.window.out_height * call.window.out_width * call.channels;
    check_rows("pool_f32", call, count, 2e-6f, [](PoolCall& filled, float* y) { filled.y = y; });
  }
}

TEST_CASE("pool_bf16 rounds what pool_f32 gives for the same numbers") {
  TestNumbers numbers(7);
  for (int i = 0; i < 60; ++i) {
    PoolCall call = make_call(numbers, i);
    auto x = make_bf16(numbers, call.window.batch * call.window.height * call.window.width * call.channels);
    x[x.size() / 2] = 0x7fc0;
    std::vector<float> wide;
    for (const uint16_t value : x) wide.push_back(widen_bf16(value));
    const auto count = static_cast<size_t>(call.window.batch * call.window.out_height * call.window.out_width);
    std::vector<float> exact(count * static_cast<size_t>(call.channels));
    call.x = wide.data(), call.y = exact.data();
    kernel_rows("pool_f32").back().function(&call, 0, 1);
    for (const KernelRow& row : kernel_rows("pool_bf16")) {
      if (!can_run(row.isa)) continue;
      std::vector<uint16_t> y(exact.size());
      call.x = x.data(), call.y = y.data();
      for (int part = 0; part < 3; ++part) row.function(&call, part, 3);
      int64_t wrong = 0;
      for (size_t k = 0; k < y.size(); ++k) wrong += !is_rounded(y[k], exact[k], 2e-6f);
      CAPTURE(isa_name(row.isa));
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("pool_u8 takes the largest byte") {
  TestNumbers numbers(6);
  for (int i = 0; i < 30; ++i) {
    PoolCall call;
    call.window = make_window(numbers);
    call.channels = numbers.between(1, 70);
    std::vector<uint8_t> x;
    for (int64_t k = 0; k < call.window.batch * call.window.height * call.window.width * call.channels; ++k) {
      x.push_back(static_cast<uint8_t>(numbers.between(0, 255)));
    }
    call.x = x.data();
    const int64_t count = call.window.batch * call.window.out_height * call.window.out_width * call.channels;
    const auto run = [&](const KernelRow& row) {
      std::vector<uint8_t> y(static_cast<size_t>(count));
      call.y = y.data();
      for (int part = 0; part < 3; ++part) row.function(&call, part, 3);
      return y;
    };
    for (const KernelRow& row : kernel_rows("pool_u8")) {
      if (can_run(row.isa)) CHECK(run(row) == run(kernel_rows("pool_u8").back()));
    }
  }
}

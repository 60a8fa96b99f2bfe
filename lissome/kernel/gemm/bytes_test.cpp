// The kernels from u8 to u8.
#include "lissome/kernel/conv/test_window.h"
#include "lissome/kernel/elementwise/lut_u8.h"
#include "lissome/kernel/gemm/test_u8s8.h"
#include "lissome/kernel/kernel_table.h"
#include "lissome/kernel/pool/average_pool_u8.h"

using namespace lissome;

TEST_CASE("average_pool_u8 gives the bits of the portable form") {
  TestNumbers numbers(8);
  for (int i = 0; i < 60; ++i) {
    AveragePoolU8Call call;
    Window& w = call.window;
    w.batch = numbers.between(1, 3), w.height = numbers.between(5, 12), w.width = numbers.between(5, 12);
    w.kernel_height = numbers.between(1, 5), w.kernel_width = numbers.between(1, 5);
    w.stride_height = numbers.between(1, 3), w.stride_width = numbers.between(1, 3);
    w.pad_height = numbers.between(0, w.kernel_height / 2), w.pad_width = numbers.between(0, w.kernel_width / 2);
    call.window = finish_window(w);
    call.channels = numbers.between(1, 150);
    call.counts_padding = i % 3 == 0;
    call.divisor = i % 7 == 0 ? 5 : 0;
    call.pad_bottom = w.pad_height, call.pad_right = w.pad_width;
    call.x_scale = 0.03f, call.x_zero = static_cast<int32_t>(numbers.between(0, 255));
    call.out_inverse = 20 + numbers.real(), call.out_zero = static_cast<int32_t>(numbers.between(0, 255));
    const Bytes bytes = make_bytes(numbers, w.batch * w.height * w.width * call.channels, 0);
    call.x = bytes.x.data();
    const int64_t count = w.batch * w.out_height * w.out_width * call.channels;
    const auto run = [&](const KernelRow& row) {
      std::vector<uint8_t> y(static_cast<size_t>(count));
      call.y = y.data();
      for (int part = 0; part < 3; ++part) row.function(&call, part, 3);
      return y;
    };
    const std::vector<uint8_t> wanted = run(kernel_rows("average_pool_u8").back());
    for (const KernelRow& row : kernel_rows("average_pool_u8")) {
      if (can_run(row.isa)) CHECK(run(row) == wanted);
    }
  }
}

TEST_CASE("an average of bytes is that of the numbers behind them") {
  AveragePoolU8Call call;
  call.window.height = 1, call.window.width = call.window.kernel_width = 4;
  call.window = finish_window(call.window);
  call.channels = 1;
  call.x_scale = 0.5f, call.x_zero = 10, call.out_inverse = 2, call.out_zero = 3;
  // 0, 1, 2, 4: 1.75 on average, which is 3.5 steps of a half, and that rounds to 4.
  const uint8_t x[] = {10, 12, 14, 18};
  uint8_t y = 0;
  call.x = x, call.y = &y;
  kernel_rows("average_pool_u8").back().function(&call, 0, 1);
  CHECK(y == 7);
}

TEST_CASE("lut_u8 looks up every byte") {
  TestNumbers numbers(9);
  for (const int64_t count : {0, 1, 31, 64, 65, 256, 1009, 70000}) {
    const Bytes bytes = make_bytes(numbers, count + 256, 0);
    const uint8_t* table = bytes.x.data() + count;
    std::vector<uint8_t> wanted;
    for (int64_t i = 0; i < count; ++i) wanted.push_back(table[bytes.x[static_cast<size_t>(i)]]);
    for (const KernelRow& row : kernel_rows("lut_u8")) {
      if (!can_run(row.isa)) continue;
      CAPTURE(isa_name(row.isa));
      std::vector<uint8_t> y(bytes.x.begin(), bytes.x.begin() + count);  // in place
      const LutU8Call call = {y.data(), table, y.data(), count};
      for (int part = 0; part < 3; ++part) row.function(&call, part, 3);
      CHECK(y == wanted);
    }
  }
}

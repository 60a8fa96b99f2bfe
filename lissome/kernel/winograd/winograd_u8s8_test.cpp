// Every row of "winograd_u8s8" against the direct form, conv_u8s8: the same bits, as long as no activation rounds.
#include "lissome/kernel/winograd/winograd_u8s8.h"

#include <doctest/doctest.h>

#include "lissome/kernel/conv/test_window.h"
#include "lissome/kernel/gemm/test_u8s8.h"

using namespace lissome;

namespace {

struct Convolution {
  Window window;
  int64_t inputs, outputs;
};

std::vector<float> convolve_directly(const Convolution& c, const OutputU8S8& output, const Bytes& bytes,
                                     const std::vector<uint8_t>& border, int64_t count) {
  const RunsU8S8 runs = choose_runs(c.window, 1);
  std::vector<int8_t> packed(static_cast<size_t>(packed_u8s8_size(c.outputs, c.inputs, runs)));
  std::vector<int32_t> sums(static_cast<size_t>(c.outputs));
  pack_u8s8(bytes.weight.data(), c.outputs, c.inputs, runs, packed.data(), sums.data());
  ConvU8S8Call call;
  static_cast<OutputU8S8&>(call) = output;
  call.x = bytes.x.data(), call.weight = packed.data(), call.weight_sums = sums.data(), call.border = border.data();
  call.in_channels = c.inputs, call.out_channels = c.outputs, call.window = c.window;
  return run_row(kernel_rows("conv_u8s8").back(), call, count, 1);
}

void check_winograd(const Convolution& c, const Bytes& bytes, uint64_t seed) {
  TestNumbers numbers(seed);
  const int64_t rows = c.window.batch * c.window.out_height * c.window.out_width, count = rows * c.outputs;
  const Surroundings around(numbers, rows, c.outputs);
  WinogradU8S8Call call;
  around.fill(numbers, call, c.outputs, false);
  const std::vector<uint8_t> border(static_cast<size_t>(c.inputs), static_cast<uint8_t>(call.x_zero));
  const std::vector<float> wanted = convolve_directly(c, call, bytes, border, count);
  // As weights of plans lie in memory.
  std::vector<int16_t> room(static_cast<size_t>(packed_winograd_u8s8_size(c.outputs, c.inputs)) + 32);
  int16_t* packed = room.data() + (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) % 64 / 2;
  std::vector<int32_t> sums(static_cast<size_t>(c.outputs));
  pack_winograd_u8s8(bytes.weight.data(), c.outputs, c.inputs, packed, sums.data());
  call.x = bytes.x.data(), call.zeros = border.data(), call.weight = packed, call.weight_sums = sums.data();
  call.tile = 4, call.in_channels = c.inputs, call.out_channels = c.outputs, call.window = c.window;
  for (const KernelRow& row : kernel_rows("winograd_u8s8")) {
    if (!can_run(row.isa)) continue;
    for (const int parts : {1, 3}) {
      for (const bool split_outputs : {false, true}) {
        choose_winograd_u8s8_blocks(call, parts);
        call.split_outputs = split_outputs;
        std::vector<std::byte> scratch(static_cast<size_t>(parts * winograd_u8s8_scratch(call)) + 64);
        call.scratch = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
        CAPTURE(isa_name(row.isa));
        CAPTURE(seed);
        check_results(run_row(row, call, count, parts), wanted, call);
      }
    }
  }
}

}  // namespace

TEST_CASE("winograd_u8s8 gives the bits of the direct form over odd shapes") {
  TestNumbers numbers(7);
  for (uint64_t seed = 500; seed < 560; ++seed) {
    Window w;
    w.batch = numbers.between(1, 2), w.height = numbers.between(1, 15), w.width = numbers.between(1, 15);
    w.kernel_height = w.kernel_width = 3;
    w.pad_height = numbers.between(w.height < 3 ? 1 : 0, 2), w.pad_width = numbers.between(w.width < 3 ? 1 : 0, 2);
    const Convolution c = {finish_window(w), 32 * numbers.between(1, 3), 32 * numbers.between(1, 3)};
    check_winograd(c, make_bytes(numbers, w.batch * w.height * w.width * c.inputs, c.outputs * c.inputs * 9), seed);
  }
}

TEST_CASE("winograd_u8s8 over several blocks of tiles") {
  TestNumbers numbers(8);
  const Convolution c = {square(1, 61, 3, 1), 96, 64};
  check_winograd(c, make_bytes(numbers, 61 * 61 * c.inputs, c.outputs * c.inputs * 9), 561);
}

TEST_CASE("winograd_u8s8 gives the bits of the direct form at the largest sums that it takes") {
  // 255 * 131586 fits 26 bits, and 255 more does not.
  constexpr int64_t kInputs = 128, kTaps = 9 * kInputs;
  for (const int sign : {1, -1}) {
    Bytes bytes;
    bytes.x.assign(static_cast<size_t>(8 * 8 * kInputs), 255);
    bytes.weight.assign(static_cast<size_t>(kTaps * 32), static_cast<int8_t>(114 * sign));
    for (int i = 0; i < 131586 - 114 * kTaps; ++i) bytes.weight[static_cast<size_t>(i)] += static_cast<int8_t>(sign);
    CHECK(fits_winograd_u8s8(bytes.weight.data(), 32, kInputs));
    check_winograd({square(1, 8, 3, 1), kInputs, 32}, bytes, 562);
    bytes.weight[0] += static_cast<int8_t>(sign);
    CHECK_FALSE(fits_winograd_u8s8(bytes.weight.data(), 32, kInputs));
  }
}

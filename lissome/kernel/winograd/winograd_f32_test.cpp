// Every row of "winograd_f32" and "winograd_bf16" against the direct convolution in f32.
#include "lissome/kernel/winograd/winograd_f32.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lissome/kernel/isa/bf16_arrays.h"
#include "lissome/kernel/kernel_table.h"

using namespace lissome;

namespace {

struct Case {
  int64_t batch, height, width, in_channels, out_channels;
  int64_t pad_height = 1, pad_width = 1;
  Epilogue epilogue;
  ResidualPlace residual = ResidualPlace::none;
};

struct Arrays {
  Arrays(const Case& c, uint64_t seed) {
    window = {.batch = c.batch, .height = c.height, .width = c.width, .kernel_height = 3, .kernel_width = 3};
    window.pad_height = c.pad_height, window.pad_width = c.pad_width;
    window.out_height = c.height + 2 * c.pad_height - 2, window.out_width = c.width + 2 * c.pad_width - 2;
    pixels = window.batch * window.out_height * window.out_width;
    TestNumbers numbers(seed);
    x = numbers.reals(c.batch * c.height * c.width * c.in_channels);
    weight = numbers.reals(c.out_channels * c.in_channels * 9);
    bias = numbers.reals(c.out_channels), residual = numbers.reals(pixels * c.out_channels);
    zeros.assign(static_cast<size_t>(c.in_channels), 0.0f);
  }
  template <typename Call>
  void fill(Call& call, const Case& c) const {
    call.x = x.data(), call.zeros = zeros.data(), call.residual = residual.data();
    fill_sizes(call, c);
  }
  template <typename Call>
  void fill_sizes(Call& call, const Case& c) const {
    call.bias = bias.data(), call.residual_place = c.residual, call.epilogue = c.epilogue, call.window = window;
    call.in_channels = c.in_channels, call.out_channels = c.out_channels;
    call.y_stride = call.residual_stride = c.out_channels;
  }
  Window window;
  int64_t pixels = 0;
  std::vector<float> x, weight, bias, residual, zeros;
};

std::vector<float> convolve_directly(const Arrays& arrays, const Case& c) {
  std::vector<float> packed(static_cast<size_t>(packed_conv_f32_size(c.out_channels, c.in_channels, 1, 9)));
  pack_conv_f32(arrays.weight.data(), c.out_channels, c.in_channels, 1, 9, packed.data());
  std::vector<float> y(static_cast<size_t>(arrays.pixels * c.out_channels));
  ConvF32Call call;
  arrays.fill(call, c);
  call.weight = packed.data(), call.y = y.data();
  kernel_rows("conv_f32").back().function(&call, 0, 1);
  return y;
}

float largest(const std::vector<float>& values) {
  float most = 0;
  for (const float value : values) most = std::max(most, std::fabs(value));
  return most;
}

std::vector<float> pack_weight(const Arrays& arrays, const Case& c, int64_t tile) {
  std::vector<float> packed(static_cast<size_t>(packed_winograd_f32_size(c.out_channels, c.in_channels, tile)));
  pack_winograd_f32(arrays.weight.data(), c.out_channels, c.in_channels, tile, packed.data());
  return packed;
}

template <typename Call>
void run_parts(const KernelRow& row, Call& call, int parts) {
  choose_winograd_blocks(call, parts);
  std::vector<float> scratch(static_cast<size_t>(parts * winograd_scratch_size(call)), 555.0f);
  call.scratch = scratch.data();
  for (int part = 0; part < parts; ++part) row.function(&call, part, parts);
}

// The largest difference, as a share of the largest element.
float relative_error(const std::vector<float>& seen, const std::vector<float>& wanted) {
  float most = 0;
  for (size_t i = 0; i < seen.size(); ++i) most = std::max(most, std::fabs(seen[i] - wanted[i]));
  return most / largest(wanted);
}

float find_bound(const KernelRow& row, int64_t tile) {
  // In double only the packed weights are rounded.
  return (row.isa == Isa::portable ? 1e-6f : 4e-6f) * (tile == 4 ? 5 : 1);
}

// Rounds `values` to bf16, and gives their bits.
std::vector<uint16_t> narrow_all(std::vector<float>& values) {
  std::vector<uint16_t> bits;
  for (float& value : values) {
    bits.push_back(narrow_bf16(value));
    value = widen_bf16(bits.back());
  }
  return bits;
}

void check_bf16(const Case& c, int64_t tile, uint64_t seed) {
  Arrays arrays(c, seed);
  const std::vector<uint16_t> x = narrow_all(arrays.x), residual = narrow_all(arrays.residual);
  const std::vector<uint16_t> zeros(arrays.zeros.size());
  const std::vector<float> packed = pack_weight(arrays, c, tile), direct = convolve_directly(arrays, c);
  CAPTURE(tile);
  CAPTURE(seed);
  for (const KernelRow& row : kernel_rows("winograd_bf16")) {
    if (!can_run(row.isa)) continue;
    CAPTURE(isa_name(row.isa));
    const float slack = find_bound(row, tile) * largest(direct);
    for (const int parts : {1, 2, 3}) {
      // In place of the residual, as plans do.
      std::vector<uint16_t> y = residual;
      WinogradBf16Call call;
      arrays.fill_sizes(call, c);
      call.tile = tile, call.weight = packed.data();
      call.x = x.data(), call.zeros = zeros.data(), call.residual = call.y = y.data();
      run_parts(row, call, parts);
      int64_t wrong = 0;
      for (size_t i = 0; i < y.size(); ++i) {
        const float seen = widen_bf16(y[i]);
        wrong +=
            !(seen >= widen_bf16(narrow_bf16(direct[i] - slack)) && seen <= widen_bf16(narrow_bf16(direct[i] + slack)));
      }
      CHECK(wrong == 0);
    }
  }
}

void check_case(const Case& c, int64_t tile, uint64_t seed) {
  const Arrays arrays(c, seed);
  const std::vector<float> packed = pack_weight(arrays, c, tile);
  const auto run = [&](const KernelRow& row, int parts) {
    std::vector<float> y(static_cast<size_t>(arrays.pixels * c.out_channels), 777.0f);
    WinogradF32Call call;
    arrays.fill(call, c);
    call.tile = tile, call.weight = packed.data(), call.y = y.data();
    run_parts(row, call, parts);
    return y;
  };
  check_bf16(c, tile, seed);
  CAPTURE(tile);
  CAPTURE(seed);
  const std::vector<float> direct = convolve_directly(arrays, c);
  for (const KernelRow& row : kernel_rows("winograd_f32")) {
    if (!can_run(row.isa)) continue;
    CAPTURE(isa_name(row.isa));
    const float bound = find_bound(row, tile);
    for (const int parts : {1, 2, 3}) CHECK(relative_error(run(row, parts), direct) <= bound);
  }
}

}  // namespace

TEST_CASE("Winograd in f32 and from bf16 agrees with the direct convolution over sizes, borders and epilogues") {
  for (const int64_t tile : {2, 4}) {
    check_case({1, 14, 14, 256, 256}, tile, 1);  // parts share the outputs
    check_case({1, 56, 56, 64, 64, 1, 1, {Activation::relu}, ResidualPlace::before_activation}, tile, 2);
    check_case({1, 3, 3, 1, 1, 0, 0}, tile, 3);
    check_case({2, 1, 9, 5, 130}, tile, 4);
    TestNumbers numbers(5);
    for (uint64_t seed = 10; seed < 50; ++seed) {
      Case c{numbers.between(1, 3), numbers.between(1, 13), numbers.between(1, 13), numbers.between(1, 40),
             numbers.between(1, 80)};
      c.pad_height = numbers.between(c.height < 3 ? 1 : 0, 2), c.pad_width = numbers.between(c.width < 3 ? 1 : 0, 2);
      c.epilogue = {static_cast<Activation>(numbers.between(0, 11)), 0.1f, 0.8f};
      c.residual = static_cast<ResidualPlace>(numbers.between(0, 2));
      check_case(c, tile, seed);
    }
  }
}

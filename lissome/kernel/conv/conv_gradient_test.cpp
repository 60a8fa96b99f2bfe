// Every row of "conv_data_f32" and "conv_weight_f32" against sums over the window as conv_gradient.h states them, and
// the packing against pack_conv_f32().
#include "lissome/kernel/conv/conv_gradient.h"

#include <doctest/doctest.h>

#include "lissome/kernel/conv/test_window.h"
#include "lissome/kernel/kernel_table.h"
#include "lissome/kernel/test_arrays.h"

using namespace lissome;

namespace {

struct Case {
  Window window;
  int64_t in_channels, out_channels, groups = 1;
};

// visit(pixel of dy, pixel of x, tap): every product of the convolution.
template <typename Visit>
void for_each_tap(const Window& w, const Visit& visit) {
  for (int64_t row = 0; row < w.batch * w.out_height * w.out_width; ++row) {
    const int64_t ow = row % w.out_width, oh = row / w.out_width % w.out_height, n = row / w.out_width / w.out_height;
    for (int64_t tap = 0; tap < w.kernel_height * w.kernel_width; ++tap) {
      const int64_t h = oh * w.stride_height - w.pad_height + tap / w.kernel_width * w.dilation_height;
      const int64_t v = ow * w.stride_width - w.pad_width + tap % w.kernel_width * w.dilation_width;
      if (h >= 0 && h < w.height && v >= 0 && v < w.width) visit(row, (n * w.height + h) * w.width + v, tap);
    }
  }
}

std::vector<float> narrow(const std::vector<double>& sums) { return {sums.begin(), sums.end()}; }

template <typename Call>
std::vector<float> run_parts(const KernelRow& row, const Call& call, int parts, std::vector<float>& result) {
  std::fill(result.begin(), result.end(), 777.0f);
  for (int part = 0; part < parts; ++part) row.function(&call, part, parts);
  return result;
}

std::vector<float> pack(const Case& c, const Window& w, const std::vector<float>& weight, ConvPacking packing) {
  const int64_t taps = w.kernel_height * w.kernel_width;
  const int64_t size = packing == ConvPacking::data
                           ? packed_conv_data_f32_size(c.out_channels, c.in_channels, c.groups, taps)
                           : packed_conv_f32_size(c.out_channels, c.in_channels, c.groups, taps);
  std::vector<float> packed(static_cast<size_t>(size));
  PackConvF32Call call;
  call.weight = weight.data(), call.packed = packed.data();
  call.in_channels = c.in_channels, call.out_channels = c.out_channels, call.groups = c.groups;
  call.packing = packing, call.window = w;
  return run_parts(find_kernel("pack_conv_f32"), call, 3, packed);
}

void check_data(const Case& c, const Window& w, const std::vector<float>& dy, const std::vector<float>& weight,
                const std::vector<float>& bias, const Epilogue& epilogue) {
  const int64_t taps = w.kernel_height * w.kernel_width, pixels = w.batch * w.height * w.width;
  const int64_t inputs = c.in_channels / c.groups, outputs = c.out_channels / c.groups;
  std::vector<double> sums(static_cast<size_t>(pixels * c.in_channels));
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = bias[i % static_cast<size_t>(c.in_channels)];
  for_each_tap(w, [&](int64_t from, int64_t to, int64_t tap) {
    for (int64_t oc = 0; oc < c.out_channels; ++oc) {
      for (int64_t ic = 0; ic < inputs; ++ic) {
        sums[static_cast<size_t>(to * c.in_channels + oc / outputs * inputs + ic)] +=
            static_cast<double>(dy[static_cast<size_t>(from * c.out_channels + oc)]) *
            weight[static_cast<size_t>((oc * inputs + ic) * taps + tap)];
      }
    }
  });
  for (double& sum : sums) sum = activate(epilogue, sum);
  const auto packed = pack(c, w, weight, ConvPacking::data);
  const std::vector<float> wanted = narrow(sums), zeros(static_cast<size_t>(c.out_channels), 0.0f);
  std::vector<float> dx(sums.size());
  ConvDataF32Call call;
  call.dy = dy.data(), call.weight = packed.data(), call.bias = bias.data(), call.zeros = zeros.data();
  call.dx = dx.data(), call.epilogue = epilogue;
  call.in_channels = c.in_channels, call.out_channels = c.out_channels, call.groups = c.groups, call.window = w;
  const float tolerance = 1e-6f * std::sqrt(static_cast<float>(taps * outputs)) + 2e-6f;
  for (const KernelRow& row : kernel_rows("conv_data_f32")) {
    if (!can_run(row.isa)) continue;
    for (const int parts : {1, 3}) {
      CAPTURE(isa_name(row.isa));
      CHECK(count_differences(run_parts(row, call, parts, dx), wanted, tolerance) == 0);
    }
  }
}

void check_weight(const Case& c, const Window& w, const std::vector<float>& x, const std::vector<float>& dy) {
  const int64_t taps = w.kernel_height * w.kernel_width;
  const int64_t inputs = c.in_channels / c.groups, outputs = c.out_channels / c.groups;
  std::vector<double> sums(static_cast<size_t>(c.out_channels * inputs * taps));
  for_each_tap(w, [&](int64_t from, int64_t to, int64_t tap) {
    for (int64_t oc = 0; oc < c.out_channels; ++oc) {
      for (int64_t ic = 0; ic < inputs; ++ic) {
        sums[static_cast<size_t>((oc * inputs + ic) * taps + tap)] +=
            static_cast<double>(dy[static_cast<size_t>(from * c.out_channels + oc)]) *
            x[static_cast<size_t>(to * c.in_channels + oc / outputs * inputs + ic)];
      }
    }
  });
  const std::vector<float> wanted = narrow(sums);
  const int64_t splits = choose_conv_weight_splits(c.out_channels, c.in_channels, c.groups, taps);
  std::vector<float> dw(static_cast<size_t>(splits) * sums.size()), whole;
  ConvWeightF32Call call;
  call.x = x.data(), call.dy = dy.data(), call.dw = dw.data();
  call.in_channels = c.in_channels, call.out_channels = c.out_channels, call.groups = c.groups, call.window = w;
  call.splits = splits;
  const float tolerance = 1e-6f * std::sqrt(static_cast<float>(w.batch * w.out_height * w.out_width)) + 2e-6f;
  for (const KernelRow& row : kernel_rows("conv_weight_f32")) {
    if (!can_run(row.isa)) continue;
    for (const int parts : {1, 3}) {
      std::vector<float> scratch(static_cast<size_t>(parts * conv_weight_scratch(call)), NAN);
      call.scratch = scratch.data();
      CAPTURE(isa_name(row.isa));
      run_parts(row, call, parts, dw);
      if (parts == 1) whole = dw;
      CHECK(dw == whole);
      std::vector<float> total(wanted.size(), 0.0f);
      for (size_t i = 0; i < dw.size(); ++i) total[i % total.size()] += dw[i];
      CHECK(count_differences(total, wanted, tolerance) == 0);
    }
  }
}

void check_case(const Case& c, uint64_t seed) {
  const Window w = finish_window(c.window);
  REQUIRE(w.out_height > 0);
  REQUIRE(w.out_width > 0);
  CAPTURE(seed);
  TestNumbers numbers(seed);
  const int64_t taps = w.kernel_height * w.kernel_width;
  const auto x = numbers.reals(w.batch * w.height * w.width * c.in_channels);
  const auto dy = numbers.reals(w.batch * w.out_height * w.out_width * c.out_channels);
  const auto weight = numbers.reals(c.out_channels * c.in_channels / c.groups * taps);
  const auto bias = numbers.reals(c.in_channels);
  check_weight(c, w, x, dy);
  const auto forward = pack(c, w, weight, ConvPacking::forward);
  std::vector<float> wanted(forward.size());
  pack_conv_f32(weight.data(), c.out_channels, c.in_channels, c.groups, taps, wanted.data());
  CHECK(forward == wanted);
  check_data(c, w, dy, weight, bias, {Activation::none, 0, 0});
  check_data(c, w, dy, weight, bias, {Activation::relu, 0, 0});
}

}  // namespace

TEST_CASE("gradients of convolutions agree with their definition over windows, strides, dilations and groups") {
  TestNumbers numbers(5);
  for (uint64_t seed = 10; seed < 70; ++seed) {
    Case c;
    Window& w = c.window;
    w.batch = numbers.between(1, 3), w.height = numbers.between(7, 14), w.width = numbers.between(9, 14);
    w.kernel_height = numbers.between(1, 3), w.kernel_width = numbers.between(1, 3);
    w.stride_height = numbers.between(1, 4), w.stride_width = numbers.between(1, 3);
    w.pad_height = numbers.between(0, 2), w.pad_width = numbers.between(0, 2);
    if (seed % 2 == 0) w.dilation_height = numbers.between(1, 3), w.dilation_width = numbers.between(1, 4);
    c.groups = numbers.between(1, 3);
    c.in_channels = c.groups * numbers.between(1, 20), c.out_channels = c.groups * numbers.between(1, 40);
    check_case(c, seed);
  }
}

TEST_CASE("gradients of convolutions agree with their definition on the layers of networks") {
  check_case({square(2, 14, 3, 1), 64, 64}, 1);
  check_case({square(2, 14, 3, 2), 48, 130}, 2);
  check_case({square(2, 15, 1, 2), 70, 65}, 3);
  check_case({square(1, 30, 7, 2), 3, 64}, 4);
  check_case({square(2, 28, 3, 1), 1, 32}, 5);
  check_case({square(9, 7, 3, 1), 40, 72}, 6);
  check_case({square(1, 33, 3, 1), 20, 8}, 7);
  check_case({{.batch = 3, .width = 500, .kernel_width = 5, .stride_width = 2, .pad_width = 2}, 6, 10}, 8);
  check_case({{.batch = 2,
               .height = 8,
               .width = 8,
               .kernel_height = 2,
               .kernel_width = 2,
               .stride_height = 2,
               .stride_width = 2},
              33,
              66},
             9);
}

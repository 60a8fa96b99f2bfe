#include "lissome/kernel/conv/col2im.h"

#include "lissome/kernel/gemm/row_check.h"

using namespace lissome;

namespace {

// Scattered from x, as a transposed convolution is defined; the kernel gathers from y.
std::vector<float> scatter(const Col2ImCall& call) {
  const Window& w = call.window;
  std::vector<double> sums(static_cast<size_t>(w.batch * w.out_height * w.out_width * call.channels));
  const float* column = call.columns;
  for (int64_t pixel = 0; pixel < w.batch * w.height * w.width; ++pixel) {
    const int64_t iw = pixel % w.width, ih = pixel / w.width % w.height, n = pixel / w.width / w.height;
    for (int64_t tap = 0; tap < w.kernel_height * w.kernel_width; ++tap, column += call.channels) {
      const int64_t oh = ih * w.stride_height - w.pad_height + tap / w.kernel_width * w.dilation_height;
      const int64_t ow = iw * w.stride_width - w.pad_width + tap % w.kernel_width * w.dilation_width;
      if (oh < 0 || oh >= w.out_height || ow < 0 || ow >= w.out_width) continue;
      for (int64_t c = 0; c < call.channels; ++c) {
        sums[static_cast<size_t>(((n * w.out_height + oh) * w.out_width + ow) * call.channels + c)] += column[c];
      }
    }
  }
  std::vector<float> y(sums.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const auto channel = static_cast<int64_t>(i) % call.channels;
    y[i] = static_cast<float>(activate(call.epilogue, sums[i] + (call.bias ? call.bias[channel] : 0)));
  }
  return y;
}

}  // namespace

TEST_CASE("col2im gathers what a transposed convolution scatters") {
  TestNumbers numbers(5);
  for (int i = 0; i < 60; ++i) {
    Col2ImCall call;
    Window& w = call.window;
    w.batch = numbers.between(1, 3), w.height = numbers.between(1, 7), w.width = numbers.between(1, 7);
    w.kernel_height = numbers.between(1, 4), w.kernel_width = numbers.between(1, 3);
    w.stride_height = numbers.between(1, 3), w.stride_width = numbers.between(1, 3);
    w.dilation_height = numbers.between(1, 2), w.dilation_width = numbers.between(1, 3);
    w.pad_height = numbers.between(0, 1), w.pad_width = numbers.between(0, 1);
    w.out_height = (w.height - 1) * w.stride_height + w.dilation_height * (w.kernel_height - 1) + 2;
    w.out_width = (w.width - 1) * w.stride_width + w.dilation_width * (w.kernel_width - 1) + 1;
    call.channels = numbers.between(1, 70);
    const int64_t taps = w.kernel_height * w.kernel_width, pixels = w.batch * w.out_height * w.out_width;
    auto columns = numbers.reals(w.batch * w.height * w.width * taps * call.channels);
    columns[columns.size() / 2] = i % 3 == 0 ? INFINITY : i % 3 == 1 ? std::nanf("") : 0;
    const auto bias = numbers.reals(call.channels);
    call.columns = columns.data(), call.bias = numbers.between(0, 1) ? bias.data() : nullptr;
    call.epilogue = {static_cast<Activation>(numbers.between(0, 1)), 0, 0};
    check_rows("col2im", call, pixels * call.channels, 1e-6f, [](Col2ImCall& filled, float* y) { filled.y = y; });
    std::vector<float> y(static_cast<size_t>(pixels * call.channels));
    call.y = y.data();
    find_kernel("col2im").function(&call, 0, 1);
    CHECK(count_differences(y, scatter(call), 1e-6f) == 0);
  }
}

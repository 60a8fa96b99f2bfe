// depthwise_transposed in f32 and bf16 against col2im of the products that it makes itself.
#include "lissome/kernel/depthwise/depthwise_transposed.h"

#include "lissome/kernel/conv/col2im.h"
#include "lissome/kernel/conv/test_window.h"
#include "lissome/kernel/gemm/row_check.h"
#include "lissome/kernel/isa/bf16_arrays.h"

using namespace lissome;

namespace {

Window draw_window(TestNumbers& numbers) {
  Window w;
  w.batch = numbers.between(1, 3), w.height = numbers.between(2, 7), w.width = numbers.between(2, 9);
  w.kernel_height = numbers.between(1, 5), w.kernel_width = numbers.between(1, 4);
  w.stride_height = numbers.between(1, 4), w.stride_width = numbers.between(1, 4);
  w.pad_height = numbers.between(0, w.kernel_height / 2), w.pad_width = numbers.between(0, w.kernel_width / 2);
  w.dilation_height = numbers.between(1, 3), w.dilation_width = numbers.between(1, 4);
  return finish_window(w, true);
}

// [pixels of x, taps, channels]
std::vector<float> multiply_taps(const DepthwiseF32Call& call) {
  const Window& w = call.window;
  const int64_t taps = w.kernel_height * w.kernel_width;
  std::vector<float> columns;
  for (int64_t pixel = 0; pixel < w.batch * w.height * w.width; ++pixel) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t c = 0; c < call.channels; ++c)
        columns.push_back(call.x[pixel * call.channels + c] * call.weight[tap * call.channels + c]);
    }
  }
  return columns;
}

}  // namespace

TEST_CASE("depthwise_transposed agrees with col2im, in bf16 once rounded") {
  TestNumbers numbers(5);
  for (int i = 0; i < 100; ++i) {
    DepthwiseF32Call wide;
    const Window w = wide.window = draw_window(numbers);
    REQUIRE(w.out_height > 0);
    REQUIRE(w.out_width > 0);
    const int64_t channels = wide.channels = numbers.between(1, 150), taps = w.kernel_height * w.kernel_width;
    const int64_t count = w.batch * w.out_height * w.out_width * channels;
    auto x = make_bf16(numbers, w.batch * w.height * w.width * channels);
    if (i % 5 == 0) x[x.size() / 2] = 0x7fc0, x[x.size() / 3] = 0x7f80, x[0] = 1;
    std::vector<float> wide_x, expected(static_cast<size_t>(count));
    for (const uint16_t value : x) wide_x.push_back(widen_bf16(value));
    const auto weight = numbers.reals(channels * taps), bias = numbers.reals(channels);
    wide.x = wide_x.data(), wide.weight = weight.data(), wide.bias = i % 2 == 0 ? bias.data() : nullptr;
    wide.epilogue = {static_cast<Activation>(numbers.between(0, 11)), 0.1f, 0.8f}, wide.y_stride = channels;
    const std::vector<float> columns = multiply_taps(wide);
    Col2ImCall fold;
    fold.columns = columns.data(), fold.bias = wide.bias, fold.y = expected.data();
    fold.channels = channels, fold.window = w, fold.epilogue = wide.epilogue;
    kernel_rows("col2im").back().function(&fold, 0, 1);
    check_rows("depthwise_transposed_f32", wide, count, 1e-5f,
               [](DepthwiseF32Call& filled, float* y) { filled.y = y; });
    std::vector<float> seen(expected.size());
    wide.y = seen.data();
    kernel_rows("depthwise_transposed_f32").back().function(&wide, 0, 1);
    CHECK(count_differences(seen, expected, 1e-5f) == 0);
    DepthwiseBf16Call call;
    call.window = w, call.channels = channels, call.y_stride = channels, call.epilogue = wide.epilogue;
    call.x = x.data(), call.weight = wide.weight, call.bias = wide.bias;
    for (const KernelRow& row : kernel_rows("depthwise_transposed_bf16")) {
      if (!can_run(row.isa)) continue;
      std::vector<uint16_t> y(expected.size(), 0x4444);
      call.y = y.data();
      for (int part = 0; part < 3; ++part) row.function(&call, part, 3);
      int64_t wrong = 0;
      for (size_t k = 0; k < y.size(); ++k) wrong += !is_rounded(y[k], expected[k], 1e-5f);
      CAPTURE(isa_name(row.isa));
      CHECK(wrong == 0);
    }
  }
}

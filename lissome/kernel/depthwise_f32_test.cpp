#include "lissome/kernel/depthwise_f32.h"

#include "lissome/kernel/row_check.h"
#include "lissome/kernel/test_window.h"

using namespace lissome;

TEST_CASE("depthwise_f32 agrees with the portable form") {
  TestNumbers numbers(5);
  for (int i = 0; i < 60; ++i) {
    DepthwiseF32Call call;
    Window& w = call.window;
    w.batch = numbers.between(1, 3), w.height = numbers.between(5, 12), w.width = numbers.between(5, 12);
    w.kernel_height = numbers.between(1, 5), w.kernel_width = numbers.between(1, 3);
    w.stride_height = numbers.between(1, 3), w.stride_width = numbers.between(1, 3);
    w.pad_height = numbers.between(0, 2), w.pad_width = numbers.between(0, 2);
    w.dilation_width = numbers.between(1, 2);
    w = finish_window(w);
    call.channels = numbers.between(1, 150);
    const int64_t taps = w.kernel_height * w.kernel_width, pixels = w.batch * w.out_height * w.out_width;
    const auto x = numbers.reals(w.batch * w.height * w.width * call.channels);
    const auto weight = numbers.reals(call.channels * taps), bias = numbers.reals(call.channels);
    const auto residual = numbers.reals(pixels * call.channels);
    std::vector<float> packed(weight.size());
    pack_depthwise_f32(weight.data(), call.channels, taps, packed.data());
    call.x = x.data(), call.weight = packed.data(), call.bias = numbers.between(0, 1) ? bias.data() : nullptr;
    call.residual = residual.data(), call.residual_place = static_cast<ResidualPlace>(numbers.between(0, 2));
    call.epilogue = {static_cast<Activation>(numbers.between(0, 11)), 0.1f, 0.8f};
    call.y_stride = call.residual_stride = call.channels;
    check_rows("depthwise_f32", call, pixels * call.channels, 1e-5f,
               [](DepthwiseF32Call& filled, float* y) { filled.y = y; });
  }
}

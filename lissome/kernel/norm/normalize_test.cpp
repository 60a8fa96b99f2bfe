#include "lissome/kernel/norm/normalize.h"

#include "lissome/kernel/gemm/row_check.h"

using namespace lissome;

TEST_CASE("layer norm and RMS norm agree with the portable form") {
  TestNumbers numbers(3);
  for (const int64_t width : {1, 7, 16, 33, 384, 1000}) {
    LayerNormCall call;
    call.rows = 9, call.width = width, call.epsilon = 1e-5f;
    const auto x = numbers.reals(call.rows * width), residual = numbers.reals(call.rows * width);
    const auto weight = numbers.reals(width), bias = numbers.reals(width);
    call.x = x.data();
    for (int form = 0; form < 16; ++form) {
      call.residual = form & 1 ? residual.data() : nullptr;
      call.weight = form & 2 ? weight.data() : nullptr;
      call.bias = form & 4 ? bias.data() : nullptr;
      call.root_mean_square = form & 8;
      std::vector<float> sum(x.size());
      call.sum = form & 1 ? sum.data() : nullptr;
      check_rows("layer_norm", call, call.rows * width, 1e-5f, [](LayerNormCall& filled, float* y) { filled.y = y; });
      if (call.sum) CHECK(sum[0] == x[0] + residual[0]);
    }
  }
}

TEST_CASE("softmax agrees with the portable form, infinities and NaN included") {
  TestNumbers numbers(5);
  for (const int64_t width : {1, 3, 16, 17, 100}) {
    SoftmaxCall call;
    call.rows = 8, call.width = width;
    auto x = numbers.reals(call.rows * width);
    for (float& value : x) value *= 20;
    x[0] = -INFINITY;
    for (int64_t k = 0; k < width; ++k) x[static_cast<size_t>(width + k)] = -INFINITY;
    x[static_cast<size_t>(2 * width)] = std::numeric_limits<float>::quiet_NaN();
    x[static_cast<size_t>(3 * width)] = 3e38f;
    call.x = x.data();
    for (const bool logarithm : {false, true}) {
      call.logarithm = logarithm;
      check_rows("softmax", call, call.rows * width, 2e-6f, [](SoftmaxCall& filled, float* y) { filled.y = y; });
    }
  }
}

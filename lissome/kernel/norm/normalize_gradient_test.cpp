#include "lissome/kernel/norm/normalize_gradient.h"

#include "lissome/kernel/gemm/row_check.h"
#include "lissome/kernel/norm/normalize.h"

using namespace lissome;

TEST_CASE("the gradient of layer norm agrees with the portable form, its sums with any number of parts") {
  TestNumbers numbers(31);
  for (const int64_t width : {1, 7, 16, 33, 192, 1000}) {
    LayerNormGradientCall call;
    call.rows = 50, call.width = width;
    const auto dy = numbers.reals(call.rows * width), x = numbers.reals(call.rows * width);
    const auto mean = numbers.reals(call.rows), factor = numbers.reals(call.rows), weight = numbers.reals(width);
    call.dy = dy.data(), call.x = x.data(), call.mean = mean.data(), call.factor = factor.data();
    for (int form = 0; form < 8; ++form) {
      call.weight = form & 1 ? weight.data() : nullptr;
      const int64_t dx_size = form & 2 ? 0 : call.rows * width;
      const int64_t weight_size = form & 4 ? 0 : kGradientShares * width;
      check_rows("layer_norm_gradient", call, dx_size + weight_size + kGradientShares * width, 1e-5f,
                 [&](LayerNormGradientCall& filled, float* y) {
                   filled.dx = dx_size > 0 ? y : nullptr;
                   filled.weight_sums = weight_size > 0 ? y + dx_size : nullptr;
                   filled.bias_sums = y + dx_size + weight_size;
                 });
    }
  }
}

TEST_CASE("layer norm gives the mean and the factor that its gradient reads") {
  TestNumbers numbers(32);
  for (const int64_t width : {3, 16, 200}) {
    LayerNormCall call;
    call.rows = 9, call.width = width, call.epsilon = 1e-5f;
    const auto x = numbers.reals(call.rows * width);
    call.x = x.data();
    check_rows("layer_norm", call, call.rows * (width + 2), 1e-5f, [](LayerNormCall& filled, float* y) {
      filled.y = y, filled.mean = y + filled.rows * filled.width, filled.factor = filled.mean + filled.rows;
    });
  }
}

TEST_CASE("the gradients of softmax and its logarithm agree with the portable form") {
  TestNumbers numbers(33);
  for (const int64_t width : {1, 5, 16, 100}) {
    SoftmaxGradientCall call;
    call.rows = 11, call.width = width;
    const auto dy = numbers.reals(call.rows * width), y = numbers.reals(call.rows * width);
    call.dy = dy.data(), call.y = y.data();
    for (const bool logarithm : {false, true}) {
      call.logarithm = logarithm;
      check_rows("softmax_gradient", call, call.rows * width, 1e-5f,
                 [](SoftmaxGradientCall& filled, float* dx) { filled.dx = dx; });
    }
  }
}

TEST_CASE("softmax gives zeros where nothing is seen, if asked, and NaN where something is unknown") {
  SoftmaxCall call;
  call.rows = 3, call.width = 20, call.zero_unseen = true;
  std::vector<float> x(60, -INFINITY);
  x[25] = 1, x[45] = std::numeric_limits<float>::quiet_NaN();
  call.x = x.data();
  check_rows("softmax", call, 60, 2e-6f, [](SoftmaxCall& filled, float* y) { filled.y = y; });
}

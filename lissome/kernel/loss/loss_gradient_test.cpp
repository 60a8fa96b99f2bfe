#include "lissome/kernel/gemm/row_check.h"
#include "lissome/kernel/loss/nll_loss.h"
#include "lissome/kernel/move/embedding_gradient.h"

using namespace lissome;

TEST_CASE("cross entropy is minus the mean of the labels' logarithms, without ignored rows") {
  const std::vector<float> logarithms = {-1, -2, -3, -4, -5, -6};
  const std::vector<int64_t> labels = {1, -100, 0};
  float loss = 0, counted = 0;
  int64_t fault = 0;
  NllLossCall call;
  call.logarithms = logarithms.data(), call.labels = labels.data(), call.loss = &loss, call.counted = &counted;
  call.fault = &fault, call.fault_code = 7, call.rows = 3, call.classes = 2;
  const KernelRow row = kernel_rows("nll_loss").back();
  row.function(&call, 0, 1);
  CHECK(loss == 3.5f);
  CHECK(counted == 2);
  CHECK(fault == 0);
  call.mean = false, call.classes = 1;
  row.function(&call, 0, 1);
  CHECK(loss == 3);
  CHECK(fault == 7);
}

TEST_CASE("the gradient of cross entropy agrees with the portable form") {
  TestNumbers numbers(41);
  for (const int64_t classes : {1, 10, 16, 77}) {
    CrossEntropyGradientCall call;
    call.rows = 12, call.classes = classes;
    const auto logarithms = numbers.reals(call.rows * classes);
    std::vector<int64_t> labels;
    for (int64_t m = 0; m < call.rows; ++m) labels.push_back(m % 5 == 4 ? -100 : numbers.between(0, classes - 1));
    const float dloss = 0.7f, counted = 10;
    call.logarithms = logarithms.data(), call.labels = labels.data(), call.dloss = &dloss, call.counted = &counted;
    for (const bool mean : {true, false}) {
      call.mean = mean;
      check_rows("cross_entropy_gradient", call, call.rows * classes, 2e-6f,
                 [](CrossEntropyGradientCall& filled, float* dx) { filled.dx = dx; });
    }
  }
}

TEST_CASE("the gradient of embeddings agrees with the portable form, and tells of an index out of range") {
  TestNumbers numbers(42);
  for (const int64_t width : {1, 16, 50}) {
    EmbeddingGradientCall call;
    call.rows = 23, call.width = width, call.count = 60, call.padding = 3;
    const auto dy = numbers.reals(call.count * width);
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < call.count; ++i) indices.push_back(numbers.between(0, call.rows - 1));
    int64_t fault = 0;
    call.dy = dy.data(), call.indices = indices.data(), call.fault = &fault, call.fault_code = 5;
    const auto place = [](EmbeddingGradientCall& filled, float* y) { filled.y = y; };
    check_rows("embedding_gradient", call, call.rows * width, 1e-6f, place);
    CHECK(fault == 0);
    indices[7] = call.rows;
    check_rows("embedding_gradient", call, call.rows * width, 1e-6f, place);
    CHECK(fault == 5);
  }
}

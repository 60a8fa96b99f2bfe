// What a recording cannot hold is refused, with the op and what to do.
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <doctest/doctest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "lissome/import_module.h"
#include "tests/expect_error.h"

using namespace lissome;
namespace nn = torch::nn;

namespace {

using Tensors = std::vector<at::Tensor>;

// Imports plain code that takes one f32[steps, 4].
Program import_code(const std::function<at::Tensor(const at::Tensor&)>& code) {
  nn::Sequential nothing;
  nothing->eval();
  return import_module(*nothing, {{"x", at::linspace(-1, 1.5, 12).view({3, 4}), {{0, {"steps", 1, 64}}}}},
                       [&](const Tensors& inputs) { return code(inputs[0]); });
}

}  // namespace

TEST_CASE("branches and loops on data are refused") {
  EXPECT_ERROR(unsupported, import_code([](const at::Tensor& x) { return x.sum().item<float>() > 0 ? x + 1 : x - 1; }),
               "aten::item", "depends on it", "where()");
  EXPECT_ERROR(unsupported,
               import_code([](const at::Tensor& x) { return x.sum().gt(1e9).is_nonzero() ? x.relu() : x; }),
               "aten::is_nonzero", "depends on its inputs");
  EXPECT_ERROR(unsupported, import_code([](const at::Tensor& x) {
                 at::Tensor y = x.abs() + 1;
                 while (y.max().item<float>() < 100) y = y * 2;
                 return y;
               }),
               "aten::item");
  EXPECT_ERROR(unsupported, import_code([](const at::Tensor& x) { return x * x.sum().item<float>(); }), "aten::item",
               "for different data");
  EXPECT_ERROR(unsupported, import_code([](const at::Tensor& x) { return x * x.gt(-9).all().item<float>(); }),
               "aten::item", "depends on its inputs", "where()");
  EXPECT_ERROR(unsupported, import_code([](const at::Tensor& x) { return x + at::rand({}).item<float>(); }),
               "aten::item", "chance");
  EXPECT_ERROR(unsupported,
               import_code([](const at::Tensor& x) { return at::equal(x, x.clone()) ? x.relu() : x.neg(); }),
               "aten::equal", "depends on its inputs");
}

TEST_CASE("data that plain C++ reads from memory are refused where they show") {
  EXPECT_ERROR(unsupported,
               import_code([](const at::Tensor& x) { return *x.data_ptr<float>() > 0 ? x.relu() : x.neg(); }),
               "other values", "where()");
  EXPECT_ERROR(unsupported, import_code([](const at::Tensor& x) {
                 return x * at::tensor({std::abs(*x.data_ptr<float>()), 1.0F, 1.0F, 1.0F});
               }),
               "plain C++", "for other data");
}

TEST_CASE("code that does something else at other sizes is refused") {
  nn::Linear linear(4, 4);
  const ForwardOne unrolled = [&](const Tensors& inputs) {
    at::Tensor y = inputs[0][0];
    for (int64_t i = 1; i < inputs[0].size(0); ++i) y = linear->forward(y) + inputs[0][i];
    return y;
  };
  const NamedDimension steps{"steps", 1, 64};
  EXPECT_ERROR(unsupported, import_module(*linear, {{"x", at::randn({3, 4}), {{0, steps}}}}, unrolled), "steps = 3",
               "loop", "nothing more here");
  EXPECT_ERROR(unsupported, import_code([](const at::Tensor& x) { return x.size(0) == 1 ? x.relu() : x.neg(); }),
               "steps = 1", "aten::relu", "narrow its range");
  EXPECT_ERROR(unsupported, import_code([](const at::Tensor& x) {
                 const at::Tensor small = x.relu(), large = x.neg();
                 return (x.size(0) > 5 ? large : small).exp();
               }),
               "another tensor");
  EXPECT_ERROR(unsupported, import_code([](const at::Tensor& x) {
                 int64_t bits = 0;
                 while ((int64_t{1} << bits) < x.size(0)) ++bits;
                 return x + bits;
               }),
               "aten::add.Scalar", "no simple function of sizes");
  EXPECT_ERROR(unsupported, import_code([](const at::Tensor& x) {
                 std::vector<float> numbers;
                 for (int64_t i = 0; i < x.size(0); ++i) numbers.push_back(static_cast<float>(i));
                 return x + at::tensor(numbers).unsqueeze(1);
               }),
               "plain C++", "steps", "arange");
}

TEST_CASE("state that the module has not registered, and counting in train mode, are refused") {
  at::Tensor cache = at::zeros({4});
  EXPECT_ERROR(unsupported, import_code([&](const at::Tensor& x) { return x + cache.add_(1); }), "aten::add_.Scalar",
               "register_buffer");
  nn::BatchNorm1d norm(nn::BatchNorm1dOptions(4).momentum(std::nullopt));
  const ForwardOne forward = [&](const Tensors& inputs) { return norm->forward(inputs[0]); };
  EXPECT_ERROR(unsupported, import_module(*norm, {{"x", at::randn({3, 4})}}, forward), "aten::item", "state");
  norm->eval();
  CHECK(import_module(*norm, {{"x", at::randn({3, 4})}}, forward).writes.empty());
}

TEST_CASE("examples that do not fit are refused, as are ranges in which the module cannot run") {
  nn::Linear linear(4, 4);
  const ForwardOne plain = [&](const Tensors& inputs) { return linear->forward(inputs[0]); };
  const auto import_at = [&](const at::Tensor& example, int64_t position, NamedDimension dimension) {
    return import_module(*linear, {{"x", example, {{position, std::move(dimension)}}}}, plain);
  };
  EXPECT_ERROR(invalid_input, import_at(at::randn({3, 4}), 0, {"steps", 5, 9}), "'x'", "steps = 3", "5 to 9");
  EXPECT_ERROR(invalid_input, import_at(at::randn({3, 4}), 2, {"steps", 1, 9}), "dimension 2");
  EXPECT_ERROR(invalid_input, import_at(at::randn({0, 4}), 0, {"steps", 0, 9}), "steps = 0");
  EXPECT_ERROR(invalid_input, import_module(*linear, {{"x", at::randn({3, 5})}}, plain), "cannot run on its examples");
  EXPECT_ERROR(invalid_input, import_at(at::randn({3, 4}), 1, {"features", 1, 9}), "cannot run at features = 5");
  EXPECT_ERROR(
      invalid_input,
      import_module(*linear, {{"x", at::randn({3, 4}), {{0, {"steps"}}}}, {"y", at::randn({2, 4}), {{0, {"steps"}}}}},
                    ForwardOne([](const Tensors& inputs) { return inputs[0]; })),
      "steps = 2", "another input has 3");
}

TEST_CASE("a program that does not give the module's numbers is refused") {
  // Autocast works below the level at which calls are recorded.
  EXPECT_ERROR(unsupported, import_code([](const at::Tensor& x) {
                 at::autocast::set_autocast_enabled(at::kCPU, true);
                 const at::Tensor y = at::matmul(x, x.t());
                 at::autocast::set_autocast_enabled(at::kCPU, false);
                 at::autocast::clear_cache();
                 return y;
               }),
               "another", "autocast");
}

// Fused and int8 ops against plain arithmetic written out here, and their gradients.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "lissome/program.h"
#include "tests/expect_error.h"

namespace lissome {
namespace {

at::Tensor call_fused(std::string_view name, std::vector<c10::IValue> arguments) {
  Op::find(name).handle().callBoxed(arguments);
  REQUIRE(arguments.size() == 1);
  return arguments[0].toTensor();
}

const at::TensorOptions kFusedType = at::TensorOptions().dtype(at::kFloat);
const at::TensorOptions kU8 = at::TensorOptions().dtype(at::kByte);
const at::TensorOptions kS8 = at::TensorOptions().dtype(at::kChar);

uint8_t quantize_one(float x, float scale, int zero) {
  const float scaled = x * (1.0f / scale);
  if (std::isnan(scaled)) return 0;
  const float clamped = std::fmin(std::fmax(scaled, static_cast<float>(-zero)), static_cast<float>(255 - zero));
  return static_cast<uint8_t>(std::nearbyint(clamped) + static_cast<float>(zero));
}

}  // namespace

TEST_CASE("linear_act is linear, plus the residual, then the activation") {
  const at::Tensor x = at::randn({3, 5}, kFusedType), weight = at::randn({4, 5}, kFusedType),
                   bias = at::randn({4}, kFusedType);
  const at::Tensor residual = at::randn({3, 4}, kFusedType);
  CHECK(at::equal(call_fused("lissome::linear_act", {x, weight, bias, "relu", {}}),
                  at::relu(at::linear(x, weight, bias))));
  CHECK(at::equal(call_fused("lissome::linear_act", {x, weight, {}, "gelu_tanh", residual}),
                  at::gelu(at::linear(x, weight).add(residual), "tanh")));
  CHECK(at::equal(call_fused("lissome::linear_act", {x, weight, bias, "none", {}}), at::linear(x, weight, bias)));
  CHECK_THROWS_AS(call_fused("lissome::linear_act", {x, weight, bias, "reluu", {}}), Error);
}

TEST_CASE("add_products is a product added to earlier sums") {
  const at::Tensor left = at::randn({3, 5}, kFusedType), right = at::randn({5, 4}, kFusedType),
                   sum = at::randn({3, 4}, kFusedType);
  CHECK(at::equal(call_fused("lissome::add_products", {sum, left, right}), at::addmm(sum, left, right)));
}

TEST_CASE("linear_bf16 is a linear in bf16 with the casts around it") {
  const at::Tensor x = at::randn({3, 5}, kFusedType), weight = at::randn({4, 5}, kFusedType),
                   bias = at::randn({4}, kFusedType);
  const at::Tensor residual = at::randn({3, 4}, kFusedType);
  const auto narrow = [](const at::Tensor& tensor) { return tensor.to(at::kBFloat16); };
  const at::Tensor plain = at::linear(narrow(x), narrow(weight), narrow(bias));
  const at::Tensor seen = call_fused("lissome::linear_bf16", {x, weight, bias, "none", {}, at::kBFloat16});
  CHECK((seen.scalar_type() == at::kBFloat16));
  CHECK(at::equal(seen, plain));
  CHECK(at::equal(call_fused("lissome::linear_bf16", {narrow(x), weight, bias, "relu", {}, at::kFloat}),
                  at::relu(plain).to(at::kFloat)));
  CHECK(at::equal(call_fused("lissome::linear_bf16", {x, weight, bias, "none", residual, at::kFloat}),
                  plain.to(at::kFloat).add(residual)));
}

TEST_CASE("conv_act is a convolution, plus the residual, then the activation") {
  const at::Tensor x = at::randn({2, 4, 6, 6}, kFusedType), weight = at::randn({8, 2, 3, 3}, kFusedType);
  const at::Tensor plain = at::convolution(x, weight, std::nullopt, {2, 2}, {1, 1}, {1, 1}, false, {0, 0}, 2);
  const c10::List<int64_t> two({2, 2}), one({1, 1}), none({0, 0});
  const at::Tensor residual = at::randn(plain.sizes(), kFusedType);
  CHECK(at::equal(call_fused("lissome::conv_act", {x, weight, {}, two, one, one, false, none, 2, "relu", residual}),
                  at::relu(plain.add(residual))));
}

TEST_CASE("conv_act pads each side by its own number") {
  const at::Tensor x = at::randn({2, 4, 6, 6}, kFusedType), weight = at::randn({8, 4, 3, 3}, kFusedType);
  const c10::List<int64_t> one({1, 1}), none({0, 0});
  for (const std::vector<int64_t>& sides : {std::vector<int64_t>{0, 1, 2, 1}, {2, 2, 0, 3}, {1, 0, 1, 0}}) {
    const at::Tensor around = at::constant_pad_nd(x, {sides[1], sides[3], sides[0], sides[2]});
    const at::Tensor plain = at::convolution(around, weight, std::nullopt, {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 1);
    const at::Tensor seen = call_fused(
        "lissome::conv_act", {x, weight, {}, one, c10::List<int64_t>(sides), one, false, none, 1, "none", {}});
    CHECK(at::allclose(seen, plain, 1e-5, 1e-5));
  }
}

TEST_CASE("every listed activation runs and propagates NaN") {
  const at::Tensor x = at::tensor({-7.0f, -0.5f, 0.0f, 0.5f, 7.0f, std::numeric_limits<float>::quiet_NaN()});
  for (const std::string_view name : activation_names()) {
    CAPTURE(name);
    CHECK(is_activation(name));
    const at::Tensor y = apply_activation(name, x);
    CHECK((y.sizes() == x.sizes()));
    CHECK(std::isnan(y[5].item<float>()));
    CHECK(y.is_same(x) == (name == "none"));
  }
  CHECK_FALSE(is_activation("softmax"));
}

TEST_CASE("fused ops have the gradients of what they are made of") {
  at::Tensor x = at::randn({3, 5}, kFusedType).requires_grad_();
  at::Tensor weight = at::randn({4, 5}, kFusedType).requires_grad_();
  call_fused("lissome::linear_act", {x, weight, {}, "silu", {}}).sum().backward();
  const at::Tensor fused = x.grad().clone();
  x.mutable_grad().zero_();
  apply_activation("silu", at::linear(x, weight)).sum().backward();
  CHECK(at::equal(fused, x.grad()));
}

TEST_CASE("quantize rounds half to even, saturates, and takes NaN to the lowest") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> numbers = {0,   0.05f, 0.15f, 0.25f, -0.05f,   -0.15f,    12.7f, 12.8f,
                                      100, -100,  1e30f, nan,   infinity, -infinity, 0.1f,  3.14159f};
  const at::Tensor x = at::tensor(numbers);
  for (const int zero : {0, 3, 128, 255}) {
    for (const float scale : {0.1f, 0.037f, 1.0f}) {
      const at::Tensor q = call_fused("lissome::quantize", {x, static_cast<double>(scale), zero});
      CHECK((q.scalar_type() == at::kByte));
      for (size_t i = 0; i < numbers.size(); ++i) {
        CAPTURE(numbers[i]);
        CHECK(q[static_cast<int64_t>(i)].item<uint8_t>() == quantize_one(numbers[i], scale, zero));
      }
    }
  }
  CHECK_THROWS_AS(call_fused("lissome::quantize", {x, 0.0, 0}), Error);
  CHECK_THROWS_AS(call_fused("lissome::quantize", {x, 1.0, 256}), Error);
}

TEST_CASE("dequantize undoes quantize to within half a step") {
  const at::Tensor x = at::randn({100}, kFusedType).clamp(-2, 2);
  const at::Tensor back =
      call_fused("lissome::dequantize", {call_fused("lissome::quantize", {x, 0.02, 128}), 0.02, 128});
  CHECK(back.sub(x).abs().max().item<float>() <= 0.0101f);
}

TEST_CASE("linear_int8 sums integers exactly and rounds once") {
  const int64_t rows = 3, inner = 2000, columns = 4;
  const at::Tensor x = at::randint(0, 256, {rows, inner}, kU8), weight = at::randint(-127, 128, {columns, inner}, kS8);
  const at::Tensor scales = at::randn({columns}, kFusedType).abs(), bias = at::randn({columns}, kFusedType);
  const int zero = 117;
  const at::Tensor y = call_fused("lissome::linear_int8", {x, 0.013, zero, weight, scales, bias, "none", {}});
  const at::Tensor u8 =
      call_fused("lissome::linear_int8_u8", {x, 0.013, zero, weight, scales, bias, "none", {}, 0.5, 100});
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      int32_t sum = 0;
      for (int64_t k = 0; k < inner; ++k) {
        sum += (x[row][k].item<uint8_t>() - zero) * weight[column][k].item<int8_t>();
      }
      const float expected =
          std::fma(static_cast<float>(sum), 0.013f * scales[column].item<float>(), bias[column].item<float>());
      CHECK(y[row][column].item<float>() == expected);
      CHECK(u8[row][column].item<uint8_t>() == quantize_one(expected, 0.5f, 100));
    }
  }
}

TEST_CASE("conv_int8 takes what lies outside for zero, not for the zero point") {
  const at::Tensor x = at::randint(0, 256, {1, 2, 4, 4}, kU8), weight = at::randint(-127, 128, {3, 2, 3, 3}, kS8);
  const at::Tensor scales = at::full({3}, 0.01, kFusedType);
  const c10::List<int64_t> one({1, 1});
  const int zero = 90;
  const at::Tensor y =
      call_fused("lissome::conv_int8", {x, 0.02, zero, weight, scales, {}, one, one, one, 1, "relu", {}, 1.0, 0});
  for (int64_t channel = 0; channel < 3; ++channel) {
    for (int64_t row = 0; row < 4; ++row) {
      int32_t sum = 0;
      for (int64_t c = 0; c < 2; ++c) {
        for (int64_t i = 0; i < 3; ++i) {
          for (int64_t j = 0; j < 3; ++j) {
            const int64_t from = row + i - 1, at = j - 1;
            if (from < 0 || from > 3 || at < 0) continue;
            sum += (x[0][c][from][at].item<uint8_t>() - zero) * weight[channel][c][i][j].item<int8_t>();
          }
        }
      }
      const float expected = std::fmax(static_cast<float>(sum) * (0.02f * 0.01f), 0.0f);
      CHECK(y[0][channel][row][0].item<float>() == expected);
    }
  }
}

TEST_CASE("conv_int8 adds any number of products exactly") {
  const c10::List<int64_t> one({1, 1}), two({2, 2});
  // Largest numbers, of which f32 holds the sum of few.
  const at::Tensor x = at::full({2, 260, 7, 5}, 255, kU8), scales = at::ones({4}, kFusedType);
  for (const int groups : {1, 2}) {
    for (const int64_t window : {1, 3, 5}) {
      CAPTURE(groups);
      CAPTURE(window);
      const at::Tensor weight = at::randint(120, 128, {4, 260 / groups, window, window}, kS8);
      const at::Tensor y =
          call_fused("lissome::conv_int8", {x, 1.0, 0, weight, scales, {}, two, one, one, groups, "none", {}, 1.0, 0});
      const at::Tensor sums = at::convolution(x.to(at::kDouble), weight.to(at::kDouble), std::nullopt, {2, 2}, {1, 1},
                                              {1, 1}, false, {0, 0}, groups);
      CHECK(at::equal(y, sums.round().to(at::kFloat)));
    }
  }
}

TEST_CASE("linear_dynamic_int8 scales each row by itself") {
  at::Tensor x = at::randn({3, 64}, kFusedType);
  x[1].mul_(1000);
  x[2].zero_();
  const at::Tensor weight = at::randint(-127, 128, {5, 64}, kS8), scales = at::full({5}, 0.01, kFusedType);
  const at::Tensor exact = at::linear(x, weight.to(at::kFloat).mul(0.01));
  const at::Tensor y = call_fused("lissome::linear_dynamic_int8", {x, weight, scales, {}, "none", {}});
  for (int64_t row = 0; row < 2; ++row) {
    CHECK(y[row].sub(exact[row]).norm().item<float>() < 0.02f * exact[row].norm().item<float>());
  }
  CHECK(at::equal(y[2], at::zeros({5}, kFusedType)));
  // One row by hand.
  float low = 0, high = 0;
  for (int64_t k = 0; k < 64; ++k) {
    low = std::fmin(low, x[0][k].item<float>());
    high = std::fmax(high, x[0][k].item<float>());
  }
  const float scale = (high - low) / 255.0f;
  const int zero = static_cast<int>(std::nearbyint(-low * (1.0f / scale)));
  int32_t sum = 0;
  for (int64_t k = 0; k < 64; ++k) {
    sum += (quantize_one(x[0][k].item<float>(), scale, zero) - zero) * weight[0][k].item<int8_t>();
  }
  CHECK(y[0][0].item<float>() == static_cast<float>(sum) * (scale * 0.01f));
}

TEST_CASE("attention_int8 is near to attention, hides what it must, and gives zeros where nothing is seen") {
  const at::Tensor q = at::randn({2, 4, 9, 16}, kFusedType), k = at::randn({2, 2, 7, 16}, kFusedType),
                   v = at::randn({2, 2, 7, 5}, kFusedType);
  at::Tensor mask = at::randn({2, 1, 9, 7}, kFusedType);
  mask.select(2, 3).fill_(-std::numeric_limits<float>::infinity());
  const auto compare = [&](const c10::IValue& hides, bool causal) {
    const at::Tensor y = call_fused("lissome::attention_int8", {q, k, v, hides, causal, 0.25});
    at::Tensor scores = at::matmul(q, k.repeat_interleave(2, 1).transpose(-1, -2)).mul(0.25);
    if (hides.isTensor()) scores = scores.add(hides.toTensor());
    const at::Tensor later = at::ones({9, 7}, kFusedType.dtype(at::kBool)).triu(1);
    if (causal) scores = scores.masked_fill(later, -std::numeric_limits<double>::infinity());
    const at::Tensor weights = at::softmax(scores, -1);
    const at::Tensor exact = at::matmul(at::where(weights.isnan(), 0.0, weights), v.repeat_interleave(2, 1));
    CHECK(y.sub(exact).norm().item<float>() < 0.02f * exact.norm().item<float>());
    return y;
  };
  compare({}, false);
  compare({}, true);
  CHECK(at::equal(compare(mask, false).select(2, 3), at::zeros({2, 4, 5}, kFusedType)));
}

TEST_CASE("dropout keeps a fraction, and no other number") {
  const at::Tensor x = at::ones({1000}, kFusedType), seed = at::full({}, 5, at::kLong);
  const auto drop = [&](double keep) { return call_fused("lissome::dropout", {x, keep, seed, 0}); };
  CHECK(at::equal(drop(1), x));
  const auto kept = drop(0.25).eq(4).sum().item<int64_t>();
  CHECK(kept > 200);
  CHECK(kept < 300);
  CHECK(drop(0.25).eq(0).sum().item<int64_t>() == 1000 - kept);
  for (const double keep : {0.0, -0.5, 1.5, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_ERROR(invalid_input, drop(keep), "'keep' is", "allowed is a fraction");
}

TEST_CASE("linear_group has a scale for each group of a row and of a weight") {
  at::Tensor x = at::randn({3, 128}, kFusedType);
  x.narrow(1, 32, 32).mul_(1000);  // another group: the others keep their accuracy
  const at::Tensor numbers = at::randint(-8, 8, {5, 128}, kS8), scales = at::rand({5, 4}, kFusedType).to(at::kBFloat16);
  const at::Tensor halves = numbers.to(at::kInt).remainder(16).reshape({5, 64, 2});
  const at::Tensor packed = halves.select(2, 0).add(halves.select(2, 1).mul(16)).to(at::kByte);
  const at::Tensor weight = numbers.to(at::kFloat).mul(scales.to(at::kFloat).repeat_interleave(32, 1));
  const at::Tensor bias = at::randn({5}, kFusedType), more = at::randn({3, 5}, kFusedType);
  const at::Tensor four = call_fused("lissome::linear_group", {x, packed, scales, bias, "none", more});
  const at::Tensor eight = call_fused("lissome::linear_group", {x, numbers, scales, bias, "none", more});
  CHECK(at::equal(four, eight));
  const at::Tensor exact = at::linear(x, weight, bias).add(more);
  CHECK(four.sub(exact).norm().item<float>() < 0.01f * exact.norm().item<float>());
  x.narrow(1, 32, 32).zero_();
  const at::Tensor rest = at::linear(x, weight);
  const at::Tensor kept = call_fused("lissome::linear_group", {x, packed, scales, {}, "none", {}});
  CHECK(kept.sub(rest).norm().item<float>() < 0.01f * rest.norm().item<float>());
  // One group by hand: the largest magnitude becomes 127.
  const at::Tensor row = at::arange(-16, 16).to(at::kFloat).reshape({1, 32}), ones = at::ones({1, 32}, kS8);
  const at::Tensor one = at::ones({1, 1}, at::kBFloat16);
  const float scale = 16.0f / 127;
  float sum = 0;
  for (int k = -16; k < 16; ++k) sum += std::nearbyint(static_cast<float>(k) * (1 / scale));
  CHECK(call_fused("lissome::linear_group", {row, ones, one, {}, "relu", {}}).item<float>() ==
        std::fmax(sum * scale, 0.0f));
  CHECK(call_fused("lissome::linear_group", {row.neg(), ones, one, {}, "none", {}}).item<float>() == -sum * scale);
  for (const at::Tensor& bad : {at::zeros({1, 30}, kS8), at::zeros({1, 32}, kFusedType), at::zeros({32}, kS8)})
    EXPECT_ERROR(invalid_input, call_fused("lissome::linear_group", {row, bad, one, {}, "none", {}}));
}

TEST_CASE("a row that is not finite gives NaN, its neighbours do not") {
  at::Tensor x = at::randn({2, 8}, kFusedType);
  x[0][3] = std::numeric_limits<float>::infinity();
  const at::Tensor weight = at::randint(-127, 128, {5, 8}, kS8), scales = at::full({5}, 0.01, kFusedType);
  const at::Tensor y = call_fused("lissome::linear_dynamic_int8", {x, weight, scales, {}, "none", {}});
  CHECK(y[0].isnan().all().item<bool>());
  CHECK(y[1].isfinite().all().item<bool>());
  const at::Tensor group_scales = at::full({5, 1}, 0.01, kFusedType).to(at::kBFloat16);
  const at::Tensor z = call_fused("lissome::linear_group", {x, weight, group_scales, {}, "none", {}});
  CHECK(z[0].isnan().all().item<bool>());
  CHECK(z[1].isfinite().all().item<bool>());
}

}  // namespace lissome

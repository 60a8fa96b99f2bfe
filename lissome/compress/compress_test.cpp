#include <ATen/core/ivalue.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "lissome/compress.h"
#include "lissome/pass.h"
#include "tests/expect_error.h"
#include "tests/program_helpers.h"

namespace lissome {
namespace {

Program make_mlp() {
  return prepare_inference(parse_program(
      R"(
    input %x: f32[batch, 32]
    parameter @a: f32[64, 32]
    parameter @b: f32[64]
    parameter @c: f32[16, 64]
    %1: f32[batch, 64] = aten::linear(%x, @a, @b)
    %2: f32[batch, 64] = aten::relu(%1)
    %3: f32[batch, 16] = aten::linear(%2, @c)
    return %3
  )",
      {{"a", at::randn({64, 32}).mul(0.2)}, {"b", at::randn({64}).mul(0.1)}, {"c", at::randn({16, 64}).mul(0.2)}}));
}

Program make_net() {
  return prepare_inference(
      parse_program(R"(
    input %x: f32[batch, 3, 16, 16]
    parameter @a: f32[8, 3, 3, 3]
    parameter @b: f32[8, 8, 3, 3]
    %1: f32[batch, 8, 16, 16] = aten::convolution(%x, @a, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %2: f32[batch, 8, 16, 16] = aten::relu(%1)
    %3: f32[batch, 8, 8, 8] = aten::max_pool2d(%2, [2, 2], [2, 2])
    %4: f32[batch, 8, 8, 8] = aten::convolution(%3, @b, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    return %4
  )",
                    {{"a", at::randn({8, 3, 3, 3}).mul(0.3)}, {"b", at::randn({8, 8, 3, 3}).mul(0.2)}}));
}

CalibrationBatches make_batches(at::IntArrayRef sizes, int count = 6) {
  CalibrationBatches batches;
  for (int i = 0; i < count; ++i) batches.push_back({at::randn(sizes)});
  return batches;
}

QuantizeOptions use_dynamic_linears(bool dynamic) {
  QuantizeOptions options;
  options.dynamic_linears = dynamic;
  return options;
}

TEST_CASE("ranges hold zero, and each method treats outliers in its own way") {
  Program program;
  const ValueId x = program.add_input("x", {ValueKind::tensor, Dtype::f32, false, {}});
  program.outputs.push_back({x, "x"});
  // One outlier among so many: cutting it off costs less than it costs everybody in rounding.
  at::Tensor data = at::randn({2'000'000});
  data.narrow(0, 0, 1).fill_(100);
  const auto observe = [&](const at::Tensor& tensor, RangeMethod method) {
    return observe_ranges(program, {x}, {{tensor}}, method).at(0);
  };
  const ActivationRange whole = observe(data, RangeMethod::minimum_maximum);
  CHECK(whole.high == doctest::Approx(100));
  CHECK(whole.low < -3);
  for (RangeMethod method : {RangeMethod::percentile, RangeMethod::mean_squared_error}) {
    const ActivationRange range = observe(data, method);
    CHECK(range.high < 50);
    CHECK(range.high > 2);
    CHECK(range.low < -2);
  }
  const ActivationRange positive = observe(data.abs().add(1), RangeMethod::minimum_maximum);
  CHECK(positive.low == 0);
  CHECK(positive.zero_point() == 0);
  const ActivationRange symmetric{-1, 1};
  CHECK(symmetric.scale() == doctest::Approx(2.0 / 255));
  CHECK(std::abs(symmetric.zero_point() - 128) <= 1);
  CHECK(observe(at::randn({0}), RangeMethod::mean_squared_error).high == 0);
}

TEST_CASE("int8 linears stay close, and neighbours hand over u8") {
  const Program program = make_mlp();
  const Quantized quantized = quantize_int8(program, make_batches({16, 32}), {}, 10);
  verify_program(quantized.program, Stage::compressed);
  REQUIRE(quantized.layers.size() == 2);
  for (const QuantizedLayer& layer : quantized.layers) {
    CHECK(layer.quantized);
    CHECK(layer.signal_to_noise > 25);
  }
  CHECK(count_ops(quantized.program, "lissome::quantize") ==
        1);  // the input's; the second layer gets u8 from the first
  CHECK(count_ops(quantized.program, "lissome::linear_int8_u8") == 1);
  CHECK(count_ops(quantized.program, "lissome::linear_int8") == 1);
  for (const Weight& weight : quantized.program.weights) CHECK((weight.name != "a" && weight.name != "c"));
  const at::Tensor x = at::randn({64, 32});
  const double error = relative_error(interpret_one(quantized.program, x), interpret_one(program, x));
  CHECK(error < 0.04);
  CHECK(error > 0);
  // The original is left alone.
  CHECK(count_ops(program, "lissome::quantize") == 0);
}

TEST_CASE("dynamic linears find their scales while running") {
  const Program program = make_mlp();
  const Quantized quantized = quantize_int8(program, make_batches({16, 32}), use_dynamic_linears(true), 10);
  CHECK(count_ops(quantized.program, "lissome::linear_dynamic_int8") == 2);
  CHECK(count_ops(quantized.program, "lissome::quantize") == 0);
  // Inputs a thousand times as large as any that calibration saw keep their accuracy.
  const at::Tensor x = at::randn({16, 32}).mul(1000);
  CHECK(relative_error(interpret_one(quantized.program, x), interpret_one(program, x)) < 0.04);
}

TEST_CASE("a weight in groups is packed once for all layers that read it, and loses least by the chosen scales") {
  const at::Tensor weight = at::randn({48, 64}).mul(0.2);
  const Program program = prepare_inference(parse_program(R"(
    input %x: f32[batch, 64]
    parameter @w: f32[48, 64]
    parameter @b: f32[48]
    %1: f32[batch, 48] = aten::linear(%x, @w, @b)
    %2: f32[batch, 48] = aten::relu(%1)
    %3: f32[batch, 48] = aten::linear(%x, @w)
    %4: f32[batch, 48] = aten::add.Tensor(%2, %3)
    return %4
  )",
                                                          {{"w", weight}, {"b", at::randn({48})}}));
  const at::Tensor x = at::randn({100, 64}), exact = interpret_one(program, x);
  double last = 1;
  for (const auto& [bits, most] : {std::pair{4, 0.12}, std::pair{8, 0.01}}) {
    CAPTURE(bits);
    const Quantized quantized = quantize_weights(program, bits);
    verify_program(quantized.program, Stage::compressed);
    CHECK(count_ops(quantized.program, "lissome::linear_group") == 2);
    REQUIRE(quantized.layers.size() == 2);
    const auto packed = std::count_if(quantized.program.weights.begin(), quantized.program.weights.end(),
                                      [](const Weight& kept) { return kept.name.find(".group") != std::string::npos; });
    CHECK(packed == 2);  // numbers and scales
    const double error = relative_error(interpret_one(quantized.program, x), exact);
    CHECK(error < most);
    CHECK(error > 0);
    CHECK(quantized.layers[0].signal_to_noise == quantized.layers[1].signal_to_noise);
    CHECK(error < last);
    last = error;
  }
  // The largest magnitude alone would choose scales that keep less.
  const at::Tensor groups = weight.reshape({48, 2, 32}), scale = groups.abs().amax({-1}, true).div(7);
  const at::Tensor noise = groups.div(scale).round().mul(scale).sub(groups);
  const double plain = 20 * std::log10(groups.norm().item().toDouble() / noise.norm().item().toDouble());
  CHECK(quantize_weights(program, 4).layers[0].signal_to_noise > plain + 1);
  EXPECT_ERROR(usage, quantize_weights(program, 3), "4 or 8 bits, not 3");
  EXPECT_ERROR(usage, quantize_weights(program, 8, {}, {.only = {"x.*"}}), "no layer fits the pattern 'x.*'");
}

TEST_CASE("a weight that is infinite or NaN, and one of odd inputs, stay as they are") {
  at::Tensor weight = at::randn({8, 32});
  weight.select(0, 1).fill_(std::numeric_limits<float>::quiet_NaN());
  const Program program = prepare_inference(parse_program(R"(
    input %x: f32[batch, 32]
    parameter @w: f32[8, 32]
    parameter @v: f32[4, 8]
    %1: f32[batch, 8] = aten::linear(%x, @w)
    %2: f32[batch, 4] = aten::linear(%1, @v)
    return %2
  )",
                                                          {{"w", weight}, {"v", at::randn({4, 8})}}));
  const Quantized quantized = quantize_weights(program, 8);
  REQUIRE(quantized.layers.size() == 2);
  CHECK(quantized.layers[0].reason == "its weight is infinite or NaN");
  CHECK(quantized.layers[1].reason == "its rows have 8 numbers, no multiple of 32");
  CHECK(count_ops(quantized.program, "lissome::linear_group") == 0);
}

TEST_CASE("attention of f32 multiplies in int8, other attention stays") {
  Program program = parse_program(R"(
    input %q: f32[2, 4, 9, 16]
    input %k: f32[2, 4, 7, 16]
    input %h: bf16[2, 4, 9, 16]
    %1: f32[2, 4, 9, 16] = aten::scaled_dot_product_attention(%q, %k, %k)
    %2: f32[2, 4, 9, 16] = aten::scaled_dot_product_attention(%1, %k, %k, none, 0.5)
    %3: bf16[2, 4, 9, 16] = aten::scaled_dot_product_attention(%h, %h, %h)
    return %1, %2, %3
  )");
  const std::vector<c10::IValue> inputs = {at::randn({2, 4, 9, 16}), at::randn({2, 4, 7, 16}),
                                           at::randn({2, 4, 9, 16}).to(at::kBFloat16)};
  const at::Tensor exact = interpret(program, inputs).at(0).toTensor();
  CHECK(quantize_attention(program) == 1);
  verify_program(program, Stage::compressed);
  CHECK(count_ops(program, "lissome::attention_int8") == 1);
  CHECK(count_ops(program, "aten::scaled_dot_product_attention") == 2);
  const double error = relative_error(interpret(program, inputs).at(0).toTensor(), exact);
  CHECK(error < 0.02);
  CHECK(error > 0);
}

TEST_CASE("pooling between convolutions works on u8") {
  const Program program = make_net();
  const Quantized quantized = quantize_int8(program, make_batches({4, 3, 16, 16}), {}, 10);
  verify_program(quantized.program, Stage::compressed);
  CHECK(count_ops(quantized.program, "lissome::conv_int8_u8") == 1);
  CHECK(count_ops(quantized.program, "lissome::conv_int8") == 1);
  CHECK(count_ops(quantized.program, "lissome::quantize") == 1);
  CHECK(count_ops(quantized.program, "lissome::max_pool2d_u8") == 1);
  const at::Tensor x = at::randn({8, 3, 16, 16});
  CHECK(relative_error(interpret_one(quantized.program, x), interpret_one(program, x)) < 0.05);
}

TEST_CASE("activations and average pools between layers work on u8") {
  const Program program = prepare_inference(parse_program(R"(
    input %x: f32[batch, 4, 16, 16]
    parameter @a: f32[8, 4, 3, 3]
    parameter @b: f32[8, 8, 3, 3]
    parameter @c: f32[6, 8]
    %1: f32[batch, 8, 16, 16] = aten::convolution(%x, @a, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %2: f32[batch, 8, 8, 8] = aten::max_pool2d(%1, [2, 2])
    %3: f32[batch, 8, 8, 8] = aten::mish(%2)
    %4: f32[batch, 8, 8, 8] = aten::convolution(%3, @b, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %5: f32[batch, 8, 8, 8] = aten::leaky_relu(%4, 0.2)
    %6: f32[batch, 8, 4, 4] = aten::avg_pool2d(%5, [2, 2])
    %7: f32[batch, 8, 4, 4] = aten::convolution(%6, @b, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %8: f32[batch, 8] = aten::mean.dim(%7, [2, 3])
    %9: f32[batch, 6] = aten::linear(%8, @c)
    return %9
  )",
                                                          {{"a", at::randn({8, 4, 3, 3}).mul(0.3)},
                                                           {"b", at::randn({8, 8, 3, 3}).mul(0.2)},
                                                           {"c", at::randn({6, 8}).mul(0.4)}}));
  const Quantized quantized = quantize_int8(program, make_batches({4, 4, 16, 16}), {}, 10);
  verify_program(quantized.program, Stage::compressed);
  CHECK(count_ops(quantized.program, "lissome::conv_int8_u8") == 3);
  CHECK(count_ops(quantized.program, "lissome::lut_u8") == 2);
  CHECK(count_ops(quantized.program, "lissome::avg_pool2d_u8") == 2);
  CHECK(count_ops(quantized.program, "lissome::quantize") == 1);
  const at::Tensor x = at::randn({8, 4, 16, 16});
  CHECK(relative_error(interpret_one(quantized.program, x), interpret_one(program, x)) < 0.06);
}

TEST_CASE("an activation stays in float where its input or its result is read as such") {
  const Program program = prepare_inference(
      parse_program(R"(
    input %x: f32[batch, 4, 16, 16]
    parameter @a: f32[8, 4, 3, 3]
    parameter @b: f32[8, 8, 3, 3]
    %1: f32[batch, 8, 16, 16] = aten::convolution(%x, @a, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %2: f32[batch, 8, 16, 16] = aten::mish(%1)
    %3: f32[batch, 8, 16, 16] = aten::convolution(%2, @b, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %4: f32[batch, 8, 16, 16] = aten::mish(%3)
    return %1, %4
  )",
                    {{"a", at::randn({8, 4, 3, 3}).mul(0.3)}, {"b", at::randn({8, 8, 3, 3}).mul(0.2)}}));
  const Quantized quantized = quantize_int8(program, make_batches({4, 4, 16, 16}), {}, 10);
  CHECK(count_ops(quantized.program, "lissome::conv_int8") == 2);
  CHECK(count_ops(quantized.program, "aten::mish") == 2);
  CHECK(count_ops(quantized.program, "lissome::lut_u8") == 0);
}

TEST_CASE("convolutions over one dimension hand over u8") {
  const Program program = prepare_inference(parse_program(R"(
    input %x: f32[batch, 4, 32]
    parameter @a: f32[8, 4, 3]
    parameter @b: f32[8, 1, 5]
    parameter @c: f32[6, 8, 1]
    %1: f32[batch, 8, 16] = aten::convolution(%x, @a, none, [2], [1], [1], false, [0], 1)
    %2: f32[batch, 8, 16] = aten::relu(%1)
    %3: f32[batch, 8, 16] = aten::convolution(%2, @b, none, [1], [2], [1], false, [0], 8)
    %4: f32[batch, 6, 16] = aten::convolution(%3, @c, none, [1], [0], [1], false, [0], 1)
    return %4
  )",
                                                          {{"a", at::randn({8, 4, 3}).mul(0.3)},
                                                           {"b", at::randn({8, 1, 5}).mul(0.4)},
                                                           {"c", at::randn({6, 8, 1}).mul(0.4)}}));
  const Quantized quantized = quantize_int8(program, make_batches({4, 4, 32}), {}, 10);
  verify_program(quantized.program, Stage::compressed);
  CHECK(count_ops(quantized.program, "lissome::conv_int8_u8") == 2);
  CHECK(count_ops(quantized.program, "lissome::conv_int8") == 1);
  const at::Tensor x = at::randn({8, 4, 32});
  CHECK(relative_error(interpret_one(quantized.program, x), interpret_one(program, x)) < 0.05);
}

TEST_CASE("residuals, and what is joined, stay in u8 from convolution to convolution") {
  const Program program = prepare_inference(parse_program(R"(
    input %x: f32[batch, 4, 12, 12]
    parameter @a: f32[8, 4, 3, 3]
    parameter @b: f32[8, 8, 3, 3]
    parameter @c: f32[6, 16, 1, 1]
    %1: f32[batch, 8, 12, 12] = aten::convolution(%x, @a, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %2: f32[batch, 8, 12, 12] = aten::relu(%1)
    %3: f32[batch, 8, 12, 12] = aten::convolution(%2, @b, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %4: f32[batch, 8, 12, 12] = aten::add.Tensor(%3, %2)
    %5: f32[batch, 8, 12, 12] = aten::relu(%4)
    %6: f32[batch, 8, 12, 12] = aten::convolution(%5, @b, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %7: f32[batch, 16, 12, 12] = aten::cat([%5, %6], 1)
    %8: f32[batch, 6, 12, 12] = aten::convolution(%7, @c, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)
    return %8
  )",
                                                          {{"a", at::randn({8, 4, 3, 3}).mul(0.3)},
                                                           {"b", at::randn({8, 8, 3, 3}).mul(0.2)},
                                                           {"c", at::randn({6, 16, 1, 1}).mul(0.2)}}));
  const Quantized quantized = quantize_int8(program, make_batches({4, 4, 12, 12}), {}, 10);
  verify_program(quantized.program, Stage::compressed);
  CHECK(count_ops(quantized.program, "lissome::conv_int8_u8") == 3);
  CHECK(count_ops(quantized.program, "lissome::conv_int8") == 1);
  CHECK(count_ops(quantized.program, "lissome::quantize") == 1);
  int narrow = 0;
  for (const Node& node : quantized.program.nodes) {
    if (node.is("aten::cat")) CHECK(quantized.program.value(node.result()).type.dtype == Dtype::u8);
    if (!node.is("lissome::conv_int8_u8") || !node.argument("residual").is_value()) continue;
    narrow += quantized.program.value(node.argument("residual").value()).type.dtype == Dtype::u8;
  }
  CHECK(narrow == 1);
  const at::Tensor x = at::randn({8, 4, 12, 12});
  CHECK(relative_error(interpret_one(quantized.program, x), interpret_one(program, x)) < 0.05);
}

TEST_CASE("transposed convolutions whose windows lie beside each other are int8 too") {
  const Program program = prepare_inference(parse_program(R"(
    input %x: f32[batch, 8, 6, 5]
    parameter @a: f32[8, 32, 2, 2]
    parameter @b: f32[32]
    parameter @c: f32[4, 32, 1, 1]
    %1: f32[batch, 32, 12, 10] = aten::convolution(%x, @a, @b, [2, 2], [0, 0], [1, 1], true, [0, 0], 1)
    %2: f32[batch, 4, 12, 10] = aten::convolution(%1, @c, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)
    return %2
  )",
                                                          {{"a", at::randn({8, 32, 2, 2}).mul(0.3)},
                                                           {"b", at::randn({32}).mul(0.1)},
                                                           {"c", at::randn({4, 32, 1, 1}).mul(0.2)}}));
  const Quantized quantized = quantize_int8(program, make_batches({4, 8, 6, 5}), {}, 10);
  verify_program(quantized.program, Stage::compressed);
  CHECK(count_ops(quantized.program, "lissome::conv_transposed_int8_u8") == 1);
  CHECK(count_ops(quantized.program, "lissome::conv_int8") == 1);
  const at::Tensor x = at::randn({8, 8, 6, 5});
  CHECK(relative_error(interpret_one(quantized.program, x), interpret_one(program, x)) < 0.05);
}

TEST_CASE("biases are corrected by the mean error that calibration saw") {
  const Program program = make_mlp();
  const CalibrationBatches batches = make_batches({512, 32}, 2);
  const Quantized quantized = quantize_int8(program, batches, {}, 0);
  const at::Tensor x = batches[0][0].toTensor();
  const at::Tensor error = interpret_one(quantized.program, x).sub(interpret_one(program, x));
  // The mean over samples all but vanishes beside the error itself.
  CHECK(error.mean({0}).abs().mean().item().toDouble() < 0.3 * error.abs().mean().item().toDouble());
}

TEST_CASE("a few rows that are far larger than the others do not move the bias of all") {
  const Program program = parse_program(R"(
    input %x: f32[batch, 32]
    parameter @a: f32[16, 32]
    %1: f32[batch, 16] = aten::linear(%x, @a, none)
    return %1
  )",
                                        {{"a", at::randn({16, 32})}});
  at::Tensor rows = at::randn({512, 32});
  rows.narrow(0, 7, 2).sign_().mul_(1e20);
  const Quantized quantized = quantize_int8(program, {{rows}, {rows}}, use_dynamic_linears(true), 0);
  const at::Tensor x = at::randn({64, 32});
  CHECK(relative_error(interpret_one(quantized.program, x), interpret_one(program, x)) < 0.02);
}

TEST_CASE("layers that lose too much, or are asked to, stay in float with a reason") {
  const Program program = make_mlp();
  const Quantized strict = quantize_int8(program, make_batches({16, 32}), {}, 150);
  for (const QuantizedLayer& layer : strict.layers) {
    CHECK_FALSE(layer.quantized);
    CHECK(layer.reason.find("dB") != std::string::npos);
  }
  const at::Tensor x = at::randn({5, 32});
  CHECK(interpret_one(strict.program, x).equal(interpret_one(program, x)));
  CHECK_THROWS_AS(quantize_int8(program, {}), Error);
}

TEST_CASE("one calibration serves every bound: a layer leaves when the bound passes what it keeps") {
  const Int8Calibration calibration(std::make_shared<const Program>(make_mlp()), make_batches({16, 32}));
  const std::vector<QuantizedLayer> all = calibration.quantize(0).layers;
  REQUIRE(all.size() > 1);
  for (const QuantizedLayer& judged : all) {
    CHECK(judged.quantized);
    const double bound = judged.signal_to_noise;
    const std::vector<QuantizedLayer> at_bound = calibration.quantize(bound).layers;
    const std::vector<QuantizedLayer> above = calibration.quantize(std::nextafter(bound, 1e9)).layers;
    for (size_t i = 0; i < all.size(); ++i) {
      CHECK(at_bound[i].quantized == (all[i].signal_to_noise >= bound));
      CHECK(above[i].quantized == (all[i].signal_to_noise > bound));
    }
  }
}

TEST_CASE("bf16 converts products and their followers, outputs stay f32") {
  const Program program = make_net();
  const Program narrow = convert_bf16(program);
  verify_program(narrow, Stage::compressed);
  const at::Tensor x = at::randn({2, 3, 16, 16});
  const at::Tensor seen = interpret_one(narrow, x);
  CHECK((seen.scalar_type() == at::kFloat));
  const double error = relative_error(seen, interpret_one(program, x));
  CHECK(error < 0.02);
  CHECK(error > 1e-5);
  for (const Weight& weight : narrow.weights) CHECK((weight.tensor.scalar_type() == at::kBFloat16));
  CHECK(count_ops(narrow, "aten::to.dtype") == 2);  // in and out, nothing between
  const Program mixed =
      convert_bf16(quantize_int8(make_mlp(), make_batches({16, 32}), use_dynamic_linears(true), 10).program);
  verify_program(mixed, Stage::compressed);
  CHECK(count_ops(mixed, "lissome::linear_dynamic_int8") == 2);
  CHECK(count_ops(mixed, "aten::to.dtype") == 2);
  const Program kept = convert_bf16(program, {{"*"}});
  CHECK(kept.nodes.size() >= program.nodes.size());
}

TEST_CASE("grouped convolutions over three dimensions stay f32 beside bf16") {
  const Program program =
      prepare_inference(parse_program(R"(
    input %x: f32[batch, 8, 7, 9, 9]
    parameter @a: f32[6, 4, 2, 3, 3]
    parameter @b: f32[5, 3]
    %1: f32[batch, 6, 2, 3, 1] = aten::convolution(%x, @a, none, [2, 1, 3], [0, 0, 0], [1, 3, 3], false, [0, 0, 0], 2)
    %2: f32[batch, 6, 2, 1, 3] = aten::transpose.int(%1, 3, 4)
    %3: f32[batch, 6, 2, 1, 5] = aten::linear(%2, @b)
    return %3
  )",
                                      {{"a", at::randn({6, 4, 2, 3, 3})}, {"b", at::randn({5, 3})}}));
  const Program narrow = convert_bf16(program);
  const at::Tensor x = at::randn({2, 8, 7, 9, 9});
  CHECK(relative_error(interpret_one(narrow, x), interpret_one(program, x)) < 0.02);
  const Weight* kernel = narrow.find_weight(program.nodes.front().argument("weight").value());
  REQUIRE(kernel != nullptr);
  CHECK((kernel->tensor.scalar_type() == at::kFloat));
  CHECK(count_ops(narrow, "aten::to.dtype") >= 2);  // around the linear
}

TEST_CASE("LSTM and GRU are split into layers, whose weights become bf16 or s8") {
  const char* lstm = R"(
    %y: f32[b, 6, 32], %hn: f32[4, b, 16], %cn: f32[4, b, 16] =
      aten::lstm.input(%x, [%h, %h], [@w0, @w1, @w2, @w2, @w0, @w1, @w2, @w2, @w3, @w1, @w2, @w2, @w3, @w1, @w2, @w2],
        true, 2, 0.0, false, true, true)
    return %y, %hn, %cn)";
  const char* gru = R"(
    %y: f32[b, 6, 32], %hn: f32[4, b, 16] =
      aten::gru.input(%x, %h, [@w0, @w1, @w2, @w2, @w0, @w1, @w2, @w2, @w3, @w1, @w2, @w2, @w3, @w1, @w2, @w2], true,
        2, 0.0, false, true, true)
    return %y, %hn)";
  for (const auto& [body, gates] : {std::pair<const char*, int64_t>{lstm, 4}, {gru, 3}}) {
    const std::string wide = std::to_string(gates * 16);
    const Program program =
        parse_program("    input %x: f32[b, 6, 8]\n    input %h: f32[4, b, 16]\n    parameter @w0: f32[" + wide +
                          ", 8]\n    parameter @w1: f32[" + wide + ", 16]\n    parameter @w2: f32[" + wide +
                          "]\n    parameter @w3: f32[" + wide + ", 32]" + body,
                      {{"w0", at::randn({gates * 16, 8}).mul(0.3)},
                       {"w1", at::randn({gates * 16, 16}).mul(0.3)},
                       {"w2", at::randn({gates * 16}).mul(0.3)},
                       {"w3", at::randn({gates * 16, 32}).mul(0.3)}});
    const std::vector<c10::IValue> inputs = {at::randn({3, 6, 8}), at::randn({4, 3, 16}).mul(0.5)};
    const auto find_largest_error = [&](const Program& changed) {
      const std::vector<c10::IValue> seen = interpret(changed, inputs), wanted = interpret(program, inputs);
      double error = 0;
      for (size_t i = 0; i < wanted.size(); ++i)
        error = std::max(error, relative_error(seen[i].toTensor(), wanted[i].toTensor()));
      return error;
    };
    Program split = program;
    CHECK(split_recurrent(split) > 0);
    verify_program(split, Stage::optimized);
    CHECK(count_ops(split, gates == 4 ? "lissome::lstm_layer" : "lissome::gru_layer") == 2);
    CHECK(count_ops(split, "aten::linear") == 2);
    CHECK(find_largest_error(split) < 1e-6);
    CHECK(split_recurrent(split) == 0);

    const Program narrow = convert_bf16(program);
    verify_program(narrow, Stage::compressed);
    CHECK(find_largest_error(narrow) < 0.01);
    CHECK(find_largest_error(narrow) > 1e-5);

    const Quantized small = quantize_int8(program, {inputs}, use_dynamic_linears(true), 10);
    verify_program(small.program, Stage::compressed);
    REQUIRE(small.layers.size() == 4);
    for (const QuantizedLayer& layer : small.layers) {
      CHECK(layer.quantized);
      CHECK(layer.signal_to_noise > 25);
    }
    CHECK(find_largest_error(small.program) < 0.03);
    for (const Weight& weight : small.program.weights)
      CHECK((weight.tensor.dim() == 1 || weight.tensor.scalar_type() == at::kChar || weight.tensor.size(0) == 2));
    const Program both = convert_bf16(small.program);
    verify_program(both, Stage::compressed);
    CHECK(find_largest_error(both) < 0.03);
  }
}

TEST_CASE("bf16 goes on where something is cut, and not where it would only be cast") {
  const Program program = parse_program(R"(
    input %x: f32[1, 4, 8]
    input %cache: f32[1, 6, 8]
    parameter @w: f32[24, 8]
    %1: f32[1, 4, 24] = aten::linear(%x, @w)
    %2: list = aten::chunk(%1, 3, -1)
    %q: f32[1, 4, 8] = lissome::getitem(%2, 0)
    %k: f32[1, 4, 8] = lissome::getitem(%2, 1)
    %v: f32[1, 4, 8] = lissome::getitem(%2, 2)
    %keys: f32[1, 10, 8] = aten::cat([%cache, %k], 1)
    %values: f32[1, 10, 8] = aten::cat([%cache, %v], 1)
    %a: f32[1, 4, 8] = aten::scaled_dot_product_attention(%q, %keys, %values)
    %b: f32[1, 4, 8] = aten::scaled_dot_product_attention(%q, %k, %v)
    return %a, %b
  )",
                                        {{"w", at::randn({24, 8})}});
  const Program narrow = convert_bf16(program);
  verify_program(narrow, Stage::compressed);
  std::vector<Dtype> attentions;
  for (const Node& node : narrow.nodes) {
    if (node.is("lissome::getitem")) CHECK(narrow.value(node.result()).type.dtype == Dtype::bf16);
    if (node.is("aten::cat")) CHECK(narrow.value(node.result()).type.dtype == Dtype::f32);
    if (node.is("aten::scaled_dot_product_attention")) {
      attentions.push_back(narrow.value(node.result()).type.dtype);
    }
  }
  CHECK((attentions == std::vector<Dtype>{Dtype::f32, Dtype::bf16}));
  const std::vector<c10::IValue> inputs = {at::randn({1, 4, 8}), at::randn({1, 6, 8})};
  const auto seen = interpret(narrow, inputs), wanted = interpret(program, inputs);
  for (size_t i = 0; i < wanted.size(); ++i) CHECK(relative_error(seen[i].toTensor(), wanted[i].toTensor()) < 0.05);
}

TEST_CASE("a layer that reads infinite, NaN or tiny values stays in float, and the others are quantized") {
  const Program program = prepare_inference(parse_program(
      R"(
    input %x: f32[batch, 32]
    parameter @a: f32[32, 32]
    parameter @b: f32[16, 32]
    %1: f32[batch, 32] = aten::linear(%x, @a)
    %2: f32[batch, 32] = aten::exp(%1)
    %3: f32[batch, 16] = aten::linear(%2, @b)
    %4: f32[batch, 16] = aten::sigmoid(%3)
    return %4
  )",
      {{"a", at::randn({32, 32})}, {"b", at::randn({16, 32}).abs()}}));
  for (const float worst : {1e4F, std::numeric_limits<float>::quiet_NaN()}) {
    CalibrationBatches batches = make_batches({8, 32});
    batches.back().front().toTensor().narrow(0, 0, 1).fill_(worst);
    const Quantized quantized = quantize_int8(program, batches, use_dynamic_linears(false), 0);
    REQUIRE(quantized.layers.size() == 2);
    CHECK(quantized.layers[0].quantized == std::isfinite(worst));
    CHECK(!quantized.layers[1].quantized);
    CHECK(quantized.layers[1].reason.find("infinite, NaN") != std::string::npos);
  }
  CalibrationBatches tiny;
  for (int i = 0; i < 6; ++i) tiny.push_back({at::randn({8, 32}).mul(1e-44)});
  const Quantized quantized = quantize_int8(program, tiny, use_dynamic_linears(false), 0);
  CHECK(!quantized.layers[0].quantized);
}

// A convolution with batch norm, then a linear.
Program make_normed_net() {
  return parse_program(R"(
    training
    input %x: f32[batch, 3, 8, 8]
    parameter @w: f32[8, 3, 3, 3]
    parameter @b: f32[8]
    parameter @gamma: f32[8]
    parameter @beta: f32[8]
    buffer @mean: f32[8]
    buffer @variance: f32[8]
    parameter @head: f32[5, 8]
    %1: f32[batch, 8, 8, 8] = aten::conv2d(%x, @w, @b, [1, 1], [1, 1])
    %2: f32[batch, 8, 8, 8] = aten::batch_norm(%1, @gamma, @beta, @mean, @variance, true, 0.1, 1e-05, false)
    %3: f32[batch, 8, 8, 8] = aten::relu(%2)
    %4: f32[batch, 8] = aten::mean.dim(%3, [2, 3])
    %5: f32[batch, 5] = aten::linear(%4, @head)
    return %5
  )",
                       {{"w", at::randn({8, 3, 3, 3}).mul(0.3)},
                        {"b", at::randn({8}).mul(0.1)},
                        {"gamma", at::rand({8}).add(0.1)},
                        {"beta", at::randn({8}).mul(0.1)},
                        {"mean", at::randn({8}).mul(0.1)},
                        {"variance", at::rand({8}).add(0.5)},
                        {"head", at::randn({5, 8}).mul(0.3)}});
}

double measure_difference(const Program& left, const Program& right, const at::Tensor& x) {
  const at::Tensor a = interpret(left, {x}).at(0).toTensor(), b = interpret(right, {x}).at(0).toTensor();
  return a.sub(b).norm().item().toDouble() / b.norm().item().toDouble();
}

TEST_CASE("fake quantization gives what the int8 form gives, whatever its scales and weights were trained to") {
  const Program original = make_normed_net();
  Program fake = insert_fake_quantization(original, make_batches({4, 3, 8, 8}));
  for (Weight& weight : fake.weights)
    if (weight.role == WeightRole::parameter) weight.tensor.mul_(at::rand(weight.tensor.sizes()).mul(0.4).add(0.7));
  const auto prepared = std::make_shared<const Program>(prepare_inference(fake));
  const Quantized quantized = Int8Calibration(prepared, CalibrationBatches()).quantize(0);
  REQUIRE(quantized.layers.size() == 2);
  CHECK(quantized.layers[0].quantized);
  CHECK(quantized.layers[1].quantized);
  const at::Tensor x = at::randn({16, 3, 8, 8});
  CHECK(measure_difference(quantized.program, fake, x) < 2e-3);
  CHECK(measure_difference(prepare_inference(original), fake, x) > 0.05);  // the factors moved it
}

TEST_CASE("fake quantization starts near the model, and leaves the model's own weights alone") {
  const Program original = make_normed_net();
  const at::Tensor before = original.find_weight("w")->tensor.clone();
  const Program fake = insert_fake_quantization(original, make_batches({4, 3, 8, 8}));
  CHECK(measure_difference(fake, prepare_inference(original), at::randn({16, 3, 8, 8})) < 0.03);
  for (const Weight& weight : fake.weights) weight.tensor.zero_();
  CHECK(original.find_weight("w")->tensor.equal(before));
  EXPECT_ERROR(invalid_input, insert_fake_quantization(original, {}), "at least one batch of calibration data");
  const Program no_layer = parse_program("input %x: f32[4]\n%1: f32[4] = aten::relu(%x)\nreturn %1", {});
  EXPECT_ERROR(unsupported, insert_fake_quantization(no_layer, make_batches({4})),
               "can be trained for int8: it has no linear");
}

TEST_CASE("the scales of a quantized export are taken") {
  const auto exported = std::make_shared<const Program>(prepare_inference(parse_program(
      R"(
    input %x: f32[batch, 16]
    parameter @w: f32[4, 16]
    %1: u8[batch, 16] = lissome::quantize_per_tensor(%x, 0.05, 100, 0, 255, u8)
    %2: f32[batch, 16] = lissome::dequantize_per_tensor(%1, 0.05, 100, 0, 255, u8)
    %3: f32[batch, 4] = aten::linear(%2, @w)
    return %3
  )",
      {{"w", at::randint(-90, 90, {4, 16}).mul(0.013)}})));
  const Quantized quantized = Int8Calibration(exported, CalibrationBatches()).quantize(0);
  REQUIRE(quantized.layers.size() == 1);
  CHECK(quantized.layers[0].range.scale() == doctest::Approx(0.05));
  CHECK(quantized.layers[0].range.zero_point() == 100);
  CHECK(measure_difference(quantized.program, *exported, at::randn({32, 16}).mul(3)) < 1e-5);
}

// Asks to stop at the `polls`-th look and ever after; `looks` counts them.
WorkControl stop_at(int polls, int& looks) {
  WorkControl control;
  control.should_stop = [&looks, polls] { return ++looks > polls; };
  return control;
}

TEST_CASE("a calibration that is stopped at any of its looks gives a valid program or a refusal") {
  const Program mlp = make_mlp(), net = make_net();
  const CalibrationBatches rows = make_batches({20, 32}, 3), images = make_batches({2, 3, 16, 16}, 3);
  const std::vector<std::pair<const char*, std::function<Program(const WorkControl&)>>> forms = {
      {"4 bits", [&](const WorkControl& control) { return quantize_weights(mlp, 4, rows, {}, control).program; }},
      {"linears",
       [&](const WorkControl& control) {
         return Int8Calibration(std::make_shared<const Program>(mlp), rows, {}, control).quantize(0).program;
       }},
      {"convolutions",
       [&](const WorkControl& control) {
         return Int8Calibration(std::make_shared<const Program>(net), images, {}, control).quantize(0).program;
       }},
      {"fake", [&](const WorkControl& control) { return insert_fake_quantization(net, images, {}, control); }},
  };
  for (const auto& [name, form] : forms) {
    CAPTURE(name);
    int all = 0;
    form(stop_at(std::numeric_limits<int>::max(), all));
    CHECK(all > 5);
    for (int polls = 0; polls < all; ++polls) {
      CAPTURE(polls);
      int looks = 0;
      try {
        verify_program(form(stop_at(polls, looks)), Stage::compressed);
      } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::unsupported);
      }
      CHECK(looks > polls);
    }
  }
}

}  // namespace
}  // namespace lissome

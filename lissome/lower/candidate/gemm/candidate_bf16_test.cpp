// A bf16 program through lowering and a session, on every level of instruction sets. Fused nodes round once where the
// program rounds after each step, so the judge is the same program in f32: ours may be no further from it than twice
// what PyTorch's own bf16 is.
#include <ATen/core/ivalue.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <regex>
#include <string>

#include "lissome/lower/bf16_check.h"

using namespace lissome;

namespace {

using NamedWeights = std::vector<std::pair<std::string, at::Tensor>>;

// A transformer's block; %m is an added mask.
constexpr const char* kTransformerBlock = R"(
    input %x: f32[batch, 37, 48]
    input %m: DTYPE[37, 37]
    parameter @qkv.weight: DTYPE[144, 48]
    parameter @qkv.bias: DTYPE[144]
    parameter @up.weight: DTYPE[100, 48]
    parameter @down.weight: DTYPE[48, 100]
    parameter @down.bias: DTYPE[48]
    parameter @norm.weight: DTYPE[48]
    parameter @norm.bias: DTYPE[48]
    %h: DTYPE[batch, 37, 48] = aten::to.dtype(%x, DTYPE)
    %1: DTYPE[batch, 37, 144] = aten::linear(%h, @qkv.weight, @qkv.bias)
    %2: DTYPE[batch, 37, 48] = aten::slice.Tensor(%1, 2, 0, 48)
    %3: DTYPE[batch, 37, 48] = aten::slice.Tensor(%1, 2, 48, 96)
    %4: DTYPE[batch, 37, 48] = aten::slice.Tensor(%1, 2, 96, 144)
    %5: DTYPE[batch, 37, 3, 16] = aten::reshape(%2, [-1, 37, 3, 16])
    %6: DTYPE[batch, 37, 3, 16] = aten::reshape(%3, [-1, 37, 3, 16])
    %7: DTYPE[batch, 37, 3, 16] = aten::reshape(%4, [-1, 37, 3, 16])
    %8: DTYPE[batch, 3, 37, 16] = aten::transpose.int(%5, 1, 2)
    %9: DTYPE[batch, 3, 37, 16] = aten::transpose.int(%6, 1, 2)
    %10: DTYPE[batch, 3, 37, 16] = aten::transpose.int(%7, 1, 2)
    %11: DTYPE[batch, 3, 37, 16] = aten::scaled_dot_product_attention(%8, %9, %10, %m)
    %12: DTYPE[batch, 37, 3, 16] = aten::transpose.int(%11, 1, 2)
    %13: DTYPE[batch, 37, 48] = aten::reshape(%12, [-1, 37, 48])
    %14: DTYPE[batch, 37, 48] = aten::add.Tensor(%13, %h)
    %15: DTYPE[batch, 37, 48] = aten::layer_norm(%14, [48], @norm.weight, @norm.bias)
    %16: DTYPE[batch, 37, 100] = lissome::linear_act(%15, @up.weight, none, "gelu")
    %17: DTYPE[batch, 37, 48] = lissome::linear_act(%16, @down.weight, @down.bias, "relu", %15)
    %18: DTYPE[batch, 37, 48] = aten::softmax.int(%17, -1)
    %19: f32[batch, 37, 48] = aten::to.dtype(%18, f32)
    return %19, %17
)";

// A small network of convolutions.
constexpr const char* kImages = R"(
    input %x: f32[batch, 3, 19, 17]
    input %m: DTYPE[1, 32, 1, 1]
    parameter @stem.weight: DTYPE[32, 3, 5, 5]
    parameter @stem.bias: DTYPE[32]
    parameter @half.weight: DTYPE[40, 32, 3, 3]
    parameter @same.weight: DTYPE[40, 40, 3, 3]
    parameter @group.weight: DTYPE[40, 10, 1, 3]
    parameter @each.weight: DTYPE[40, 1, 3, 3]
    parameter @up.weight: DTYPE[40, 32, 3, 3]
    parameter @up.bias: DTYPE[32]
    parameter @spread.weight: DTYPE[40, 8, 3, 4]
    parameter @apart.weight: DTYPE[32, 1, 4, 4]
    %h: DTYPE[batch, 3, 19, 17] = aten::to.dtype(%x, DTYPE)
    %1: DTYPE[batch, 32, 19, 17] =
      lissome::conv_act(%h, @stem.weight, @stem.bias, [1, 1], [2, 2], [1, 1], false, [0, 0], 1, "silu")
    %2: DTYPE[batch, 40, 10, 9] = aten::convolution(%1, @half.weight, none, [2, 2], [1, 1], [1, 1], false, [0, 0], 1)
    %3: DTYPE[batch, 40, 10, 9] =
      lissome::conv_act(%2, @same.weight, none, [1, 1], [2, 2], [2, 2], false, [0, 0], 1, "relu", %2)
    %4: DTYPE[batch, 40, 10, 9] = aten::convolution(%3, @group.weight, none, [1, 1], [0, 1], [1, 1], false, [0, 0], 4)
    %each: DTYPE[batch, 40, 10, 9] =
      lissome::conv_act(%4, @each.weight, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 40, "relu", %4)
    %5: DTYPE[batch, 32, 19, 17] =
      aten::convolution(%each, @up.weight, @up.bias, [2, 2], [1, 1], [1, 1], true, [0, 0], 1)
    %6: DTYPE[batch, 32, 19, 17] = aten::add.Tensor(%5, %m)
    %7: DTYPE[batch, 64, 19, 17] = aten::cat([%6, %1], 1)
    %8: DTYPE[batch, 64, 9, 8] = aten::max_pool2d(%7, [2, 2])
    %9: DTYPE[batch, 64, 4, 4] = aten::avg_pool2d(%8, [2, 2])
    %10: DTYPE[batch, 64, 1, 1] = aten::adaptive_avg_pool2d(%9, [1, 1])
    %11: f32[batch, 64, 1, 1] = aten::to.dtype(%10, f32)
    %spread: DTYPE[batch, 32, 30, 19] =
      lissome::conv_act(%each, @spread.weight, @up.bias, [3, 2], [1, 2], [2, 2], true, [0, 0], 4, "relu")
    %apart: DTYPE[batch, 32, 60, 38] =
      lissome::conv_act(%spread, @apart.weight, none, [2, 2], [1, 1], [1, 1], true, [0, 0], 32, "silu")
    return %11, %apart
)";

Program make_transformer_block(const NamedWeights& weights, const std::string& dtype, at::ScalarType type,
                               const char* text = kTransformerBlock) {
  NamedWeights own;
  for (const auto& [name, tensor] : weights) own.emplace_back(name, tensor.to(type));
  return parse_program(std::regex_replace(std::string(text), std::regex("DTYPE"), dtype), own);
}

// The first input is f32 of these sizes, at several batches, the second bf16.
void check_all_levels(const Program& program, const Program& exact, std::vector<int64_t> x_sizes,
                      const std::vector<int64_t>& mask_sizes, const std::vector<ForcedKernel>& forced = {}) {
  LowerOptions options;
  options.effort = Effort::fast;
  options.forced = forced;
  for (const char* level : {"none", "avx2", "avx512", "vnni", "bf16", "amx"}) {
    CAPTURE(std::string(level));
    mask_features(level);
    const auto plan = std::make_shared<const Plan>(lower_program(program, options));
    std::string refusals;
    for (const PlanChoice& choice : plan->choices) {
      if (choice.chosen != "reference") continue;
      for (const PlanCandidate& candidate : choice.candidates) {
        refusals += choice.node + " " + candidate.name + ": " + candidate.refused + "\n";
      }
    }
    CAPTURE(refusals);
    REQUIRE(!plan->needs_reference());
    for (const ForcedKernel& wanted : forced) {
      CHECK(std::ranges::count(plan->choices, wanted.kernel, &PlanChoice::chosen) == 2);
    }
    for (const int threads : {1, 2}) {
      SessionOptions session_options;
      session_options.threads = threads;
      Session session(plan, session_options);
      for (const int64_t batch : {1, 3}) {
        x_sizes[0] = batch;
        const at::Tensor x = at::randn(x_sizes), mask = at::randn(mask_sizes).to(at::kBFloat16);
        const auto seen = run_session(session, {x, mask});
        const auto theirs = interpret(program, {x, mask}), truth = interpret(exact, {x, mask.to(at::kFloat)});
        REQUIRE(seen.size() == 2);
        CHECK((seen[0].toTensor().scalar_type() == at::kFloat));
        CHECK((seen[1].toTensor().scalar_type() == at::kBFloat16));
        for (size_t i = 0; i < seen.size(); ++i) {
          CHECK(measure_error(seen[i], truth[i]) <= 2 * measure_error(theirs[i], truth[i]));
        }
      }
    }
  }
  mask_features("amx");
}

at::Tensor draw_rounded(std::vector<int64_t> sizes, double scale) {
  return at::randn(sizes).mul(scale).to(at::kBFloat16);
}

}  // namespace

TEST_CASE("a bf16 block needs no libtorch, and is as near to f32 as PyTorch's own, on every level") {
  const NamedWeights weights = {
      {"qkv.weight", draw_rounded({144, 48}, 0.2)}, {"qkv.bias", draw_rounded({144}, 0.2)},
      {"up.weight", draw_rounded({100, 48}, 0.2)},  {"down.weight", draw_rounded({48, 100}, 0.2)},
      {"down.bias", draw_rounded({48}, 0.2)},       {"norm.weight", draw_rounded({48}, 1)},
      {"norm.bias", draw_rounded({48}, 0.2)}};
  const Program program = make_transformer_block(weights, "bf16", at::kBFloat16),
                exact = make_transformer_block(weights, "f32", at::kFloat);
  check_all_levels(program, exact, {1, 37, 48}, {37, 37});
}

TEST_CASE("bf16 convolutions need no libtorch, and are as near to f32 as PyTorch's own, on every level") {
  const NamedWeights weights = {
      {"stem.weight", draw_rounded({32, 3, 5, 5}, 0.2)},   {"stem.bias", draw_rounded({32}, 0.2)},
      {"half.weight", draw_rounded({40, 32, 3, 3}, 0.1)},  {"same.weight", draw_rounded({40, 40, 3, 3}, 0.1)},
      {"group.weight", draw_rounded({40, 10, 1, 3}, 0.2)}, {"each.weight", draw_rounded({40, 1, 3, 3}, 0.2)},
      {"up.weight", draw_rounded({40, 32, 3, 3}, 0.1)},    {"up.bias", draw_rounded({32}, 0.2)},
      {"spread.weight", draw_rounded({40, 8, 3, 4}, 0.1)}, {"apart.weight", draw_rounded({32, 1, 4, 4}, 0.3)}};
  check_all_levels(make_transformer_block(weights, "bf16", at::kBFloat16, kImages),
                   make_transformer_block(weights, "f32", at::kFloat, kImages), {1, 3, 19, 17}, {1, 32, 1, 1});
}

TEST_CASE("bf16 convolutions through Winograd are as near to f32 as PyTorch's own, on every level") {
  constexpr const char* kPlain = R"(
    input %x: f32[batch, 24, 13, 11]
    input %m: DTYPE[1, 40, 1, 1]
    parameter @c1: DTYPE[40, 24, 3, 3]
    parameter @b1: DTYPE[40]
    parameter @c2: DTYPE[40, 40, 3, 3]
    %h: DTYPE[batch, 24, 13, 11] = aten::to.dtype(%x, DTYPE)
    %1: DTYPE[batch, 40, 13, 11] = lissome::conv_act(%h, @c1, @b1, [1, 1], [1, 1], [1, 1], false, [0, 0], 1, "silu")
    %2: DTYPE[batch, 40, 13, 11] =
      lissome::conv_act(%1, @c2, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1, "relu", residual=%1)
    %3: DTYPE[batch, 40, 13, 11] = aten::add.Tensor(%2, %m)
    %4: f32[batch, 40, 13, 11] = aten::to.dtype(%1, f32)
    return %4, %3
  )";
  const NamedWeights weights = {{"c1", draw_rounded({40, 24, 3, 3}, 0.1)},
                                {"b1", draw_rounded({40}, 0.2)},
                                {"c2", draw_rounded({40, 40, 3, 3}, 0.1)}};
  const Program program = make_transformer_block(weights, "bf16", at::kBFloat16, kPlain);
  const Program exact = make_transformer_block(weights, "f32", at::kFloat, kPlain);
  for (const char* kernel : {"winograd_bf16_4x4", "winograd_bf16_2x2"}) {
    check_all_levels(program, exact, {1, 24, 13, 11}, {1, 40, 1, 1}, {{"lissome::conv_act", kernel}});
  }
}

TEST_CASE(
    "bf16 products of computed matrices need no libtorch, and are as near to f32 as PyTorch's own, on every level") {
  // Products of two values, then a layer forward and backward.
  const std::string text = R"(
    input %x: f32[batch, 37, 48]
    input %m: DTYPE[100, 48]
    %h: DTYPE[batch, 37, 48] = aten::to.dtype(%x, DTYPE)
    %wide: f32[100, 48] = aten::to.dtype(%m, f32)
    %turned: DTYPE[batch, 48, 37] = aten::transpose.int(%h, 1, 2)
    %scores: DTYPE[batch, 37, 37] = aten::bmm(%h, %turned)
    %mixed: DTYPE[batch, 37, 48] = aten::matmul(%scores, %h)
    %1: DTYPE[batch, 37, 100] = aten::linear(%mixed, %m, none)
    %2: DTYPE[batch, 37, 100] = lissome::linear_bf16(%x, %wide, none, "gelu", %1, DTYPE)
    %3: DTYPE[37*batch, 100] = aten::reshape(%2, [-1, 100])
    %4: DTYPE[37*batch, 48] = aten::mm(%3, %m)
    %5: DTYPE[100, 37*batch] = aten::transpose.int(%3, 0, 1)
    %6: DTYPE[48, 37*batch] = aten::transpose.int(%4, 0, 1)
    %7: f32[100, 48] = lissome::linear_bf16(%5, %6, none, "none", %wide, f32)
    return %7, %4
  )";
  const std::string exact =
      std::regex_replace(text, std::regex("linear_bf16\\((.*), (DTYPE|f32)\\)"), "linear_act($1)");
  check_all_levels(make_transformer_block({}, "bf16", at::kBFloat16, text.c_str()),
                   make_transformer_block({}, "f32", at::kFloat, exact.c_str()), {1, 37, 48}, {100, 48});
}

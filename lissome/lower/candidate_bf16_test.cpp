// A bf16 program through lowering and a session, on every level of instruction sets. Fused nodes round once where the
// program rounds after each step, so the judge is the same program in f32: ours may be no further from it than twice
// what PyTorch's own bf16 is.
#include <ATen/core/ivalue.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <regex>
#include <string>

#include "lissome/lower.h"

using namespace lissome;

namespace {

using Weights = std::vector<std::pair<std::string, at::Tensor>>;

// A transformer's block; %m is an added mask.
constexpr const char* kBlock = R"(
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

Program make_block(const Weights& weights, const std::string& dtype, at::ScalarType type) {
  Weights own;
  for (const auto& [name, tensor] : weights) own.emplace_back(name, tensor.to(type));
  return parse_program(std::regex_replace(kBlock, std::regex("DTYPE"), dtype), own);
}

double measure_error(const c10::IValue& seen, const c10::IValue& wanted) {
  return seen.toTensor().to(at::kDouble).sub(wanted.toTensor().to(at::kDouble)).abs().max().item().toDouble();
}

}  // namespace

TEST_CASE("a bf16 block needs no libtorch, and is as near to f32 as PyTorch's own, on every level") {
  const auto random = [](std::vector<int64_t> sizes, double scale) {
    return at::randn(sizes).mul(scale).to(at::kBFloat16);
  };
  const Weights weights = {{"qkv.weight", random({144, 48}, 0.2)}, {"qkv.bias", random({144}, 0.2)},
                           {"up.weight", random({100, 48}, 0.2)},  {"down.weight", random({48, 100}, 0.2)},
                           {"down.bias", random({48}, 0.2)},       {"norm.weight", random({48}, 1)},
                           {"norm.bias", random({48}, 0.2)}};
  const Program program = make_block(weights, "bf16", at::kBFloat16), exact = make_block(weights, "f32", at::kFloat);
  LowerOptions options;
  options.effort = Effort::fast;
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
    for (const int threads : {1, 2}) {
      SessionOptions session_options;
      session_options.threads = threads;
      Session session(plan, session_options);
      for (const int64_t batch : {1, 3}) {
        const at::Tensor x = random({batch, 37, 48}, 1).to(at::kFloat), mask = random({37, 37}, 1);
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

// What a training step in bf16 asks for beside products: attention with its gradient, element-wise nodes of bf16 and
// f32 together, and casts, on every level of instruction sets: against interpret() at the rounding of bf16, attention,
// which rounds what it multiplies, beside f32.
#include <ATen/core/ivalue.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>

#include "lissome/lower/bf16_check.h"
#include "lissome/lower/program_check.h"

using namespace lissome;

namespace {

// Two numbers that were rounded once from nearly the same one: a unit of 8 bits.
constexpr double kOneRounding = 1.0 / 128;

at::Tensor draw(std::vector<int64_t> sizes) { return at::randn(sizes).to(at::kBFloat16); }

void check_levels(const std::string& text, const std::vector<c10::IValue>& inputs, double tolerance) {
  const Program program = parse_program(text);
  const auto wanted = interpret(program, inputs);
  for (const char* level : {"none", "avx2", "avx512", "bf16"}) {
    CAPTURE(std::string(level));
    mask_features(level);
    const auto plan = lower_natively(program);
    for (const int threads : {1, 2}) {
      SessionOptions session_options;
      session_options.threads = threads;
      Session session(plan, session_options);
      check_same(run_session(session, inputs), wanted, tolerance);
    }
  }
  mask_features("amx");
}

}  // namespace

TEST_CASE("attention in bf16 with the logarithms of its sums, and its gradient") {
  const std::string text = R"(
    dim n in 1..128
    input %q32: f32[2, n, 3, 40]
    input %k32: f32[2, n, 3, 40]
    input %v32: f32[2, 3, n, 40]
    input %dy32: f32[2, 3, n, 40]
    %q: DTYPE[2, n, 3, 40] = aten::to.dtype(%q32, DTYPE)
    %k: DTYPE[2, n, 3, 40] = aten::to.dtype(%k32, DTYPE)
    %v: DTYPE[2, 3, n, 40] = aten::to.dtype(%v32, DTYPE)
    %dy: DTYPE[2, 3, n, 40] = aten::to.dtype(%dy32, DTYPE)
    %query: DTYPE[2, 3, n, 40] = aten::transpose.int(%q, 1, 2)
    %key: DTYPE[2, 3, n, 40] = aten::transpose.int(%k, 1, 2)
    %y: DTYPE[2, 3, n, 40], %sums: f32[2, 3, n] =
      aten::_scaled_dot_product_flash_attention_for_cpu(%query, %key, %v, is_causal=CAUSAL)
    %dq: DTYPE[2, 3, n, 40], %dk: DTYPE[2, 3, n, 40], %dv: DTYPE[2, 3, n, 40] =
      aten::_scaled_dot_product_flash_attention_for_cpu_backward(%dy, %query, %key, %v, %y, %sums, 0.0, CAUSAL)
    return %y, %sums, %dq, %dk, %dv
  )";
  for (const std::string causal : {"true", "false"}) {
    std::string form = text;
    for (size_t at = form.find("CAUSAL"); at != std::string::npos; at = form.find("CAUSAL"))
      form.replace(at, 6, causal);
    for (const int64_t length : {2, 70}) {
      const auto exact = [](std::vector<int64_t> sizes) { return draw(std::move(sizes)).to(at::kFloat); };
      check_beside_f32(form, {exact({2, length, 3, 40}), exact({2, length, 3, 40}), exact({2, 3, length, 40}),
                              exact({2, 3, length, 40})});
    }
  }
}

TEST_CASE("gradients of activations in bf16") {
  for (const int64_t length : {1, 300}) {
    check_levels(R"(
    dim n in 1..512
    input %dy: bf16[n, 5]
    input %x: bf16[n, 5]
    %gelu: bf16[n, 5] = aten::gelu_backward(%dy, %x)
    %tanh_form: bf16[n, 5] = aten::gelu_backward(%dy, %x, approximate="tanh")
    %silu: bf16[n, 5] = aten::silu_backward(%dy, %x)
    %tanh: bf16[n, 5] = aten::tanh_backward(%dy, %x)
    %sigmoid: bf16[n, 5] = aten::sigmoid_backward(%dy, %x)
    return %gelu, %tanh_form, %silu, %tanh, %sigmoid
  )",
                 {draw({length, 5}), draw({length, 5})}, kOneRounding);
  }
}

TEST_CASE("element-wise nodes of bf16 and f32 together") {
  for (const int64_t length : {1, 300}) {
    check_levels(R"(
    dim n in 1..512
    input %x: f32[n, 6]
    input %y: bf16[n, 6]
    input %mask: bool[n, 1]
    %sum: f32[n, 6] = aten::add.Tensor(%x, %y)
    %scaled: f32[n, 6] = aten::mul.Tensor(%y, %x)
    %positive: bool[n, 6] = aten::gt.Scalar(%y, 0.5)
    %chosen: bf16[n, 6] = aten::where.ScalarOther(%mask, %y, 0.1)
    %limited: bf16[n, 6] = aten::clamp(%y, -0.3, 0.7)
    %turned: bf16[6, n] = aten::permute(%y, [1, 0])
    %wide: f32[6, n] = aten::to.dtype(%turned, f32)
    %narrow: bf16[n, 6] = aten::to.dtype(%sum, bf16)
    %total: bf16[1, 6] = aten::sum.dim_IntList(%y, [0], keepdim=true)
    return %sum, %scaled, %positive, %chosen, %limited, %wide, %narrow, %total
  )",
                 {at::randn({length, 6}), draw({length, 6}), at::randn({length, 1}).gt(0)}, kOneRounding);
  }
}

TEST_CASE("a number that bf16 would round is compared in libtorch, which rounds it") {
  const Program program = parse_program(R"(
    input %x: bf16[4]
    %y: bool[4] = aten::gt.Scalar(%x, 0.1)
    return %y
  )");
  LowerOptions options;
  options.effort = Effort::fast;
  const auto plan = std::make_shared<Plan>(lower_program(program, options));
  CHECK(plan->needs_reference());
  // 0.1 is 0.10009765625 in bf16, which is not above itself.
  const std::vector<c10::IValue> inputs = {at::full({4}, 0.1, at::kBFloat16)};
  Session session(plan);
  check_same(run_session(session, inputs), interpret(program, inputs));
}

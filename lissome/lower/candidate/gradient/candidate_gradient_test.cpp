// What training asks for: products with weights that change, gradients, and losses, at two sizes of what varies.
#include <ATen/core/ivalue.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include "lissome/lower/program_check.h"

using namespace lissome;

TEST_CASE("linears and their gradients with weights that are inputs") {
  for (const int64_t length : {2, 40}) {
    check_program(R"(
    dim n in 1..64
    input %x: f32[n, 3, 24]
    input %w: f32[70, 24]
    input %b: f32[70]
    input %dy: f32[n, 3, 70]
    %y: f32[n, 3, 70] = aten::linear(%x, %w, %b)
    %z: f32[n, 3, 70] = lissome::linear_act(%x, %w, %b, act="relu", residual=%dy)
    %size: int = aten::sym_size.int(%x, 0)
    %rows: int = lissome::sym_mul(3, %size)
    %flat: f32[3*n, 24] = aten::reshape(%x, [%rows, 24])
    %grown: f32[3*n, 70] = aten::reshape(%dy, [%rows, 70])
    %dx: f32[3*n, 24] = aten::mm(%grown, %w)
    %turned: f32[70, 3*n] = aten::permute(%grown, [1, 0])
    %dw: f32[70, 24] = aten::mm(%turned, %flat)
    %db: f32[1, 70] = aten::sum.dim_IntList(%grown, [0], keepdim=true)
    %more: f32[70, 24] = lissome::add_products(%dw, %turned, %flat)
    return %y, %z, %dx, %more, %db
  )",
                  {}, {at::randn({length, 3, 24}), at::randn({70, 24}), at::randn({70}), at::randn({length, 3, 70})});
  }
}

TEST_CASE("layer norm with what its gradient reads, and the gradient") {
  for (const int64_t length : {1, 50}) {
    check_program(R"(
    dim n in 1..64
    input %x: f32[n, 3, 24]
    input %w: f32[24]
    input %b: f32[24]
    input %dy: f32[n, 3, 24]
    %y: f32[n, 3, 24], %mean: f32[n, 3, 1], %factor: f32[n, 3, 1] = aten::native_layer_norm(%x, [24], %w, %b, 1e-05)
    %dx: f32[n, 3, 24], %dw: f32[24], %db: f32[24] =
      aten::native_layer_norm_backward(%dy, %x, [24], %mean, %factor, %w, %b, [true, true, true])
    return %y, %mean, %factor, %dx, %dw, %db
  )",
                  {}, {at::randn({length, 3, 24}), at::randn({24}), at::randn({24}), at::randn({length, 3, 24})});
  }
}

TEST_CASE("gradients of activations") {
  for (const int64_t length : {1, 300}) {
    check_program(R"(
    dim n in 1..512
    input %dy: f32[n, 5]
    input %x: f32[n, 5]
    %gelu: f32[n, 5] = aten::gelu_backward(%dy, %x)
    %tanh_form: f32[n, 5] = aten::gelu_backward(%dy, %x, approximate="tanh")
    %silu: f32[n, 5] = aten::silu_backward(%dy, %x)
    %tanh: f32[n, 5] = aten::tanh_backward(%dy, %x)
    %sigmoid: f32[n, 5] = aten::sigmoid_backward(%dy, %x)
    %relu: f32[n, 5] = aten::threshold_backward(%dy, %x, 0.25)
    return %gelu, %tanh_form, %silu, %tanh, %sigmoid, %relu
  )",
                  {}, {at::randn({length, 5}), at::randn({length, 5})});
  }
}

TEST_CASE("attention with the logarithms of its sums, and its gradient") {
  const std::string text = R"(
    dim n in 1..64
    input %q: f32[2, n, 3, 20]
    input %k: f32[2, n, 3, 20]
    input %v: f32[2, 3, n, 20]
    input %dy: f32[2, 3, n, 20]
    %query: f32[2, 3, n, 20] = aten::transpose.int(%q, 1, 2)
    %key: f32[2, 3, n, 20] = aten::transpose.int(%k, 1, 2)
    %y: f32[2, 3, n, 20], %sums: f32[2, 3, n] =
      aten::_scaled_dot_product_flash_attention_for_cpu(%query, %key, %v, is_causal=CAUSAL)
    %dq: f32[2, 3, n, 20], %dk: f32[2, 3, n, 20], %dv: f32[2, 3, n, 20] =
      aten::_scaled_dot_product_flash_attention_for_cpu_backward(%dy, %query, %key, %v, %y, %sums, 0.0, CAUSAL)
    return %y, %dq, %dk, %dv
  )";
  for (const std::string causal : {"true", "false"}) {
    std::string form = text;
    for (size_t at = form.find("CAUSAL"); at != std::string::npos; at = form.find("CAUSAL"))
      form.replace(at, 6, causal);
    for (const int64_t length : {2, 60}) {  // of one key the weight is one, and its gradient zero
      check_program(form.c_str(), {},
                    {at::randn({2, length, 3, 20}), at::randn({2, length, 3, 20}), at::randn({2, 3, length, 20}),
                     at::randn({2, 3, length, 20})});
    }
  }
}

TEST_CASE("cross entropy and its gradient, and gradients of softmax by itself") {
  for (const int64_t length : {1, 33}) {
    at::Tensor labels = at::randint(0, 17, {length}, at::kLong);
    if (length > 1) labels[1] = -100;
    check_program(R"(
    dim n in 1..64
    input %x: f32[n, 17]
    input %labels: i64[n]
    input %dy: f32[n, 17]
    %logarithms: f32[n, 17] = aten::_log_softmax(%x, 1, false)
    %loss: f32[], %counted: f32[] = aten::nll_loss_forward(%logarithms, %labels, none, 1, -100)
    %one: f32[] = aten::ones_like(%loss)
    %scores: f32[n, 17] = aten::nll_loss_backward(%one, %logarithms, %labels, none, 1, -100, %counted)
    %dx: f32[n, 17] = aten::_log_softmax_backward_data(%scores, %logarithms, 1, f32)
    %alone: f32[n, 17] = aten::_log_softmax_backward_data(%dy, %logarithms, 1, f32)
    %parts: f32[n, 17] = aten::_safe_softmax(%x, 1)
    %plain: f32[n, 17] = aten::_softmax_backward_data(%dy, %parts, 1, f32)
    return %loss, %dx, %alone, %plain
  )",
                  {}, {at::randn({length, 17}), labels, at::randn({length, 17})});
  }
}

TEST_CASE("rows of a table that changes, and the table's gradient") {
  for (const int64_t length : {1, 33}) {
    check_program(R"(
    dim n in 1..64
    input %table: f32[11, 6]
    input %ids: i64[n, 2]
    input %dy: f32[n, 2, 6]
    %rows: f32[n, 2, 6] = aten::embedding(%table, %ids)
    %gradient: f32[11, 6] = aten::embedding_dense_backward(%dy, %ids, 11, 4, false)
    return %rows, %gradient
  )",
                  {}, {at::randn({11, 6}), at::randint(0, 11, {length, 2}, at::kLong), at::randn({length, 2, 6})});
  }
}

TEST_CASE("what multiplies random numbers leaves libtorch, which draws them") {
  const Program program = parse_program(R"(
    dim n in 1..64
    input %x: f32[n, 6]
    %like: f32[n, 6] = aten::empty_like(%x)
    %drawn: f32[n, 6] = aten::bernoulli.p(%like, 0.5)
    %mask: f32[n, 6] = aten::mul.Scalar(%drawn, 2)
    %y: f32[n, 6] = aten::mul.Tensor(%x, %mask)
    return %y, %mask
  )");
  LowerOptions options;
  options.effort = Effort::fast;
  const Plan plan = lower_program(program, options);
  CHECK(plan.needs_reference());
  for (const PlanChoice& choice : plan.choices) {
    if (choice.op.starts_with("aten::mul")) CHECK(choice.chosen == "elementwise");
  }
}

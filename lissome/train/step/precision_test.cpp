// The recorded step of a program under autocast is, bit for bit, what autograd gives under autocast; against Python's
// steps, tests/train/test_precision.py compares it.
#include "lissome/train/step/precision.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scalar_tensor.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "lissome/differentiate.h"
#include "lissome/pass.h"
#include "lissome/train/optim/loss_scaler.h"
#include "tests/expect_error.h"
#include "tests/program_helpers.h"

using namespace lissome;

namespace {

using Tensors = std::vector<at::Tensor>;

class Autocast {
 public:
  explicit Autocast(at::ScalarType dtype) {
    at::autocast::set_autocast_dtype(at::kCPU, dtype);
    at::autocast::set_autocast_enabled(at::kCPU, true);
  }
  ~Autocast() {
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::clear_cache();
  }
};

Program parse_with_random_weights(std::string_view text) {
  Program program = parse_program(text);
  for (Weight& weight : program.weights) {
    if (weight.tensor.is_floating_point()) weight.tensor.uniform_(-1, 1);
  }
  return program;
}

// Outputs, gradients of all parameters and what is written, by autograd, autocast on in the forward half alone.
Tensors differentiate_directly(Program program, at::ScalarType dtype, const Tensors& inputs) {
  Tensors leaves, written, results;
  for (Weight& weight : program.weights) {
    weight.tensor = weight.tensor.detach();
    if (weight.role == WeightRole::parameter) leaves.push_back(weight.tensor.requires_grad_());
  }
  InterpretOptions options;
  options.gradients = true;
  options.written = &written;
  {
    const Autocast autocast(dtype);
    for (const c10::IValue& output : interpret(program, {inputs.begin(), inputs.end()}, options))
      results.push_back(output.toTensor());
  }
  for (at::Tensor& gradient : torch::autograd::grad({results.front()}, leaves)) results.push_back(gradient);
  results.insert(results.end(), written.begin(), written.end());
  return results;
}

std::vector<std::string> list_parameters(const Program& program) {
  std::vector<std::string> names;
  for (const Weight& weight : program.weights) {
    if (weight.role == WeightRole::parameter) names.push_back(weight.name);
  }
  return names;
}

Tensors run(const Program& joined, const Tensors& inputs) {
  Tensors results, written;
  InterpretOptions options;
  options.written = &written;
  for (const c10::IValue& output : interpret(joined, {inputs.begin(), inputs.end()}, options))
    results.push_back(output.toTensor());
  results.insert(results.end(), written.begin(), written.end());
  return results;
}

Program check_steps(const Program& program, Dtype dtype, const std::vector<Tensors>& trials) {
  const Program joined =
      differentiate_program(apply_autocast(program, dtype), list_parameters(program), trials.front());
  CHECK(same_program(parse_program(print_program(joined)), joined));
  CHECK(joined.writes.size() == program.writes.size());
  for (const Tensors& inputs : trials) {
    at::manual_seed(5);
    const Tensors expected = differentiate_directly(program, scalar_type_of(dtype), inputs);
    at::manual_seed(5);
    const Tensors seen = run(joined, inputs);
    REQUIRE(seen.size() == expected.size());
    for (size_t i = 0; i < seen.size(); ++i) {
      INFO("result ", i);
      CHECK((seen[i].scalar_type() == expected[i].scalar_type()));
      CHECK(at::equal(seen[i], expected[i]));
    }
  }
  return joined;
}

int count_casts(const Program& program, std::string_view weight) {
  const ValueId value = program.find_weight(weight)->value;
  return static_cast<int>(std::count_if(program.nodes.begin(), program.nodes.end(), [&](const Node& node) {
    return node.is("aten::_to_copy") && node.argument("self") == Argument(value);
  }));
}

}  // namespace

TEST_CASE("a classifier in bf16 and f16, at every batch size: products small, loss and gradients in f32") {
  at::manual_seed(0);
  const Program program = parse_with_random_weights(
      "dim n in 1..64\n"
      "input %x: f32[n, 6]\n"
      "input %labels: i64[n]\n"
      "parameter @w: f32[5, 6]\n"
      "parameter @b: f32[5]\n"
      "parameter @v: f32[3, 5]\n"
      "%h = aten::linear(%x, @w, @b)\n"
      "%a = aten::gelu(%h)\n"
      "%scores = aten::linear(%a, @v)\n"
      "%loss = aten::cross_entropy_loss(%scores, %labels)\n"
      "return %loss, %scores\n");
  const auto batch = [](int64_t size) { return Tensors{at::randn({size, 6}), at::randint(0, 3, {size}, at::kLong)}; };
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16}) {
    const Program joined = check_steps(program, dtype, {batch(4), batch(1), batch(9)});
    CHECK(joined.outputs[2].name == "gradient.w");
    CHECK(joined.value(joined.outputs[0].value.value()).type.dtype == Dtype::f32);
    CHECK(joined.value(joined.outputs[1].value.value()).type.dtype == dtype);
    CHECK(joined.value(joined.outputs[2].value.value()).type.dtype == Dtype::f32);
    for (const char* weight : {"w", "b", "v"}) CHECK(count_casts(joined, weight) == 1);
  }
}

TEST_CASE("ops that autocast casts for and that are composed of nothing are seen with their casts") {
  at::manual_seed(0);
  const Program program = parse_with_random_weights(
      "dim n in 2..64\n"
      "input %x: f32[n, 4]\n"
      "parameter @w: f32[4, 4]\n"
      "parameter @b: f32[4]\n"
      "parameter @p: f32[1]\n"
      "%a = aten::mm(%x, @w)\n"
      "%c = aten::addmm(@b, %a, @w)\n"
      "%d = aten::prelu(%c, @p)\n"
      "%e = aten::unsqueeze(%d, 0)\n"
      "%k = aten::transpose.int(%e, 1, 2)\n"
      "%f = aten::bmm(%e, %k)\n"
      "%s = aten::cat([%d, %x])\n"
      "%t = aten::mse_loss(%s, %s)\n"
      "%u = aten::sum(%f)\n"
      "%l = aten::sum(%s)\n"
      "%v = aten::add.Tensor(%t, %u)\n"
      "%loss = aten::add.Tensor(%v, %l)\n"
      "return %loss, %f, %s\n");
  const Program joined = check_steps(program, Dtype::bf16, {{at::randn({5, 4})}, {at::randn({2, 4})}});
  CHECK(joined.value(joined.outputs[1].value.value()).type.dtype == Dtype::bf16);
  CHECK(joined.value(joined.outputs[2].value.value()).type.dtype == Dtype::f32);
}

TEST_CASE("convolution and batch statistics: state stays f32 and is written") {
  at::manual_seed(0);
  const Program program = parse_with_random_weights(
      "training\n"
      "dim n in 2..16\n"
      "input %x: f32[n, 2, 8, 8]\n"
      "parameter @k: f32[4, 2, 3, 3]\n"
      "parameter @scale: f32[4]\n"
      "parameter @shift: f32[4]\n"
      "buffer @mean: f32[4]\n"
      "buffer @variance: f32[4]\n"
      "%c = aten::conv2d(%x, @k, none, [1, 1], [1, 1])\n"
      "%b, %m, %i, %new, %next = "
      "aten::_native_batch_norm_legit_functional(%c, @scale, @shift, @mean, @variance, true, 0.1, 1e-5)\n"
      "@mean <- %new\n"
      "@variance <- %next\n"
      "%r = aten::relu(%b)\n"
      "%p = aten::max_pool2d(%r, [2, 2])\n"
      "%loss = aten::mean(%p)\n"
      "return %loss\n");
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16})
    check_steps(program, dtype, {{at::randn({4, 2, 8, 8})}, {at::randn({3, 2, 8, 8})}});
}

TEST_CASE("attention with layer norm, dropout and a tied table, whose cast and gradient are one") {
  at::manual_seed(0);
  const Program program = parse_with_random_weights(
      "training\n"
      "dim n in 1..16\n"
      "input %ids: i64[n, 7]\n"
      "parameter @table: f32[11, 8]\n"
      "parameter @scale: f32[8]\n"
      "parameter @shift: f32[8]\n"
      "parameter @w: f32[8, 8]\n"
      "%e = aten::embedding(@table, %ids)\n"
      "%y = aten::layer_norm(%e, [8], @scale, @shift)\n"
      "%l = aten::linear(%y, @w)\n"
      "%m = aten::linear(%l, @w)\n"
      "%q = aten::unsqueeze(%m, 1)\n"
      "%a = aten::scaled_dot_product_attention(%q, %q, %q)\n"
      "%s = aten::squeeze.dim(%a, 1)\n"
      "%d = aten::dropout(%s, 0.5, true)\n"
      "%z = aten::add.Tensor(%d, %e)\n"
      "%logits = aten::linear(%z, @table)\n"
      "%flat = aten::flatten.using_ints(%logits, 0, 1)\n"
      "%next = aten::flatten.using_ints(%ids, 0, 1)\n"
      "%loss = aten::cross_entropy_loss(%flat, %next)\n"
      "return %loss\n");
  const auto batch = [](int64_t size) { return Tensors{at::randint(0, 11, {size, 7}, at::kLong)}; };
  const Program joined = check_steps(program, Dtype::bf16, {batch(3), batch(5)});
  for (const char* weight : {"table", "w"}) CHECK(count_casts(joined, weight) == 1);
  CHECK(count_ops(joined, "aten::_scaled_dot_product_flash_attention_for_cpu") == 1);
}

TEST_CASE("an exported region that switches autocast off stays f32") {
  at::manual_seed(0);
  const Program program = parse_with_random_weights(
      "input %x: f32[3, 4]\n"
      "parameter @w: f32[4, 4]\n"
      "%a: f32[3, 4] = lissome::region(\"autocast=cpu,bf16,0\", %x, @w) {\n"
      "  input %x: f32[3, 4]\n"
      "  input %w: f32[4, 4]\n"
      "  %0: f32[3, 4] = aten::linear(%x, %w)\n"
      "  return %0\n"
      "}\n"
      "%b = aten::linear(%a, @w)\n"
      "%loss = aten::sum(%b)\n"
      "return %loss, %a, %b\n");
  const Program joined = check_steps(program, Dtype::bf16, {{at::randn({3, 4})}});
  CHECK(joined.value(joined.outputs[1].value.value()).type.dtype == Dtype::f32);
  CHECK(joined.value(joined.outputs[2].value.value()).type.dtype == Dtype::bf16);
}

TEST_CASE("there and back again in one cast's steps is left out by the passes") {
  at::manual_seed(0);
  const Program program = parse_with_random_weights(
      "dim n in 1..64\n"
      "input %x: f32[n, 4]\n"
      "parameter @w: f32[4, 4]\n"
      "%a = aten::linear(%x, @w)\n"
      "%n = aten::layer_norm(%a, [4])\n"
      "%p = aten::softmax.int(%n, 1)\n"
      "%b = aten::linear(%p, @w)\n"
      "%c = aten::mse_loss(%b, %x)\n"
      "return %c\n");
  const Tensors inputs = {at::randn({5, 4})};
  Program joined = differentiate_program(apply_autocast(program, Dtype::bf16), {"w"}, inputs);
  const Tensors expected = run(joined, inputs);
  const int before = count_ops(joined, "aten::_to_copy");
  run_pipeline(joined);
  CHECK(count_ops(joined, "aten::_to_copy") == 0);
  CHECK(count_ops(joined, "aten::to.dtype") <= before);
  const Tensors seen = run(joined, inputs);
  for (size_t i = 0; i < seen.size(); ++i)
    CHECK(seen[i].sub(expected[i]).abs().max().item().toDouble() <= 1e-2 * expected[i].abs().max().item().toDouble());
}

TEST_CASE("a scaled loss scales every gradient by exactly that") {
  at::manual_seed(0);
  const Program program = parse_with_random_weights(
      "dim n in 1..64\n"
      "input %x: f32[n, 4]\n"
      "parameter @w: f32[4, 4]\n"
      "%a = aten::linear(%x, @w)\n"
      "%loss = aten::mse_loss(%a, %x)\n"
      "return %loss, %a\n");
  const Tensors inputs = {at::randn({5, 4})};
  const Tensors plain = run(differentiate_program(program, {"w"}, inputs), inputs);
  const Program scaled = differentiate_program(attach_loss_scale(program), {"w"}, {inputs[0], at::scalar_tensor(2.0F)});
  const Tensors seen = run(scaled, {inputs[0], at::scalar_tensor(1024.0F)});
  CHECK(at::equal(seen[0], plain[0].mul(1024)));
  CHECK(at::equal(seen[1], plain[1]));
  CHECK(at::equal(seen[2], plain[2].mul(1024)));
}

TEST_CASE("other dtypes are refused") {
  const Program program = parse_program("input %x: f32[2]\n%s = aten::sum(%x)\nreturn %s\n");
  EXPECT_ERROR(invalid_input, apply_autocast(program, Dtype::i8), "bf16 or f16, not i8");
}

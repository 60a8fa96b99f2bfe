// The recorded gradients are autograd's own, at sizes that were recorded and at others.
#include "lissome/differentiate.h"

#include <ATen/Context.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>

#include "lissome/measure.h"
#include "tests/expect_error.h"
#include "tests/program_helpers.h"

using namespace lissome;

namespace {

using Tensors = std::vector<at::Tensor>;

at::Tensor find_tensor(const Program& program, const std::string& name) { return program.find_weight(name)->tensor; }

// Loss, gradients and written state by autograd over the program itself.
Tensors differentiate_directly(Program program, const std::vector<std::string>& weights, const Tensors& inputs) {
  Tensors leaves, written;
  for (Weight& weight : program.weights) {
    weight.tensor = weight.tensor.detach();
    const bool wanted = std::find(weights.begin(), weights.end(), weight.name) != weights.end();
    if (wanted) weight.tensor.requires_grad_();
  }
  for (const std::string& name : weights) leaves.push_back(find_tensor(program, name));
  InterpretOptions options;
  options.gradients = true;
  options.written = &written;
  const auto outputs = interpret(program, {inputs.begin(), inputs.end()}, options);
  Tensors results{outputs[0].toTensor().detach()};
  for (at::Tensor& gradient : torch::autograd::grad({outputs[0].toTensor()}, leaves, {}, false, false, true)) {
    results.push_back(gradient);
  }
  for (const at::Tensor& tensor : written) results.push_back(tensor.detach());
  return results;
}

// The differentiated program gives bit for bit what autograd gives, on each of `trials`; the first is the example.
Program check_gradients(const Program& program, const std::vector<std::string>& weights,
                        const std::vector<Tensors>& trials) {
  Program joined = differentiate_program(program, weights, trials.front());
  CHECK(same_program(parse_program(print_program(joined)), joined));
  CHECK(joined.outputs.size() == program.outputs.size() + weights.size());
  CHECK(joined.writes.size() == program.writes.size());
  for (const Node& node : joined.nodes) CHECK_FALSE(find_effects(joined, node).barrier());
  for (const Tensors& inputs : trials) {
    at::manual_seed(5);
    const Tensors expected = differentiate_directly(program, weights, inputs);
    at::manual_seed(5);
    Tensors written;
    InterpretOptions options;
    options.written = &written;
    const auto outputs = interpret(joined, {inputs.begin(), inputs.end()}, options);
    CHECK(at::equal(outputs[0].toTensor(), expected[0]));
    for (size_t i = 0; i < weights.size(); ++i) {
      INFO("gradient of ", weights[i]);
      const c10::IValue& gradient = outputs[program.outputs.size() + i];
      REQUIRE(gradient.isNone() != expected[1 + i].defined());
      if (!gradient.isNone()) CHECK(at::equal(gradient.toTensor(), expected[1 + i]));
    }
    for (size_t i = 0; i < written.size(); ++i) CHECK(at::equal(written[i], expected[1 + weights.size() + i]));
  }
  return joined;
}

Program parse_with_random_weights(std::string_view text) {
  Program program = parse_program(text);
  for (Weight& weight : program.weights) {
    if (weight.tensor.is_floating_point()) weight.tensor.uniform_(0.1, 1);
  }
  return program;
}

}  // namespace

TEST_CASE("a classifier's gradients, at every batch size") {
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
  const Program joined = check_gradients(program, {"w", "b", "v"}, {batch(4), batch(4), batch(1), batch(9)});
  CHECK(joined.outputs[2].name == "gradient.w");
  CHECK(count_ops(joined, "aten::gelu_backward") == 1);
  CHECK(joined.value(joined.inputs[0].value).type.sizes[0] == Dimension::named("n"));
}

TEST_CASE("a number that scales the loss does not widen its gradients") {
  at::manual_seed(7);
  for (const char* line : {"aten::mul.Tensor(%mean, 0.1)", "aten::mul.Tensor(%mean, 2)", "aten::div.Tensor(%mean, 0.3)",
                           "aten::add.Tensor(%mean, 0.1, alpha=0.5)", "aten::pow.Tensor_Scalar(%mean, 0.5)"}) {
    CAPTURE(line);
    const Program program = parse_with_random_weights(std::string("dim n in 1..64\n"
                                                                  "input %x: f32[n, 6]\n"
                                                                  "parameter @w: f32[5, 6]\n"
                                                                  "%h = aten::linear(%x, @w)\n"
                                                                  "%square = aten::square(%h)\n"
                                                                  "%mean = aten::mean(%square)\n"
                                                                  "%loss = ") +
                                                      line + "\nreturn %loss\n");
    check_gradients(program, {"w"}, {{at::randn({4, 6})}, {at::randn({9, 6})}});
  }
}

TEST_CASE("labels among which some are ignored") {
  at::manual_seed(6);
  const Program program = parse_with_random_weights(
      "dim n in 2..64\n"
      "input %x: f32[n, 6]\n"
      "input %labels: i64[n]\n"
      "parameter @w: f32[40, 6]\n"
      "%scores = aten::linear(%x, @w)\n"
      "%loss = aten::cross_entropy_loss(%scores, %labels)\n"
      "return %loss\n");
  const auto batch = [](int64_t size) {
    at::Tensor labels = at::randint(0, 40, {size}, at::kLong);
    labels.narrow(0, 1, size / 2).fill_(-100);
    return Tensors{at::randn({size, 6}), labels};
  };
  check_gradients(program, {"w"}, {batch(4), batch(4), batch(9)});
}

TEST_CASE("convolution, batch statistics and pooling: gradients and written state") {
  at::manual_seed(0);
  const Program program = parse_with_random_weights(
      "training\n"
      "dim n in 2..16\n"
      "input %x: f32[n, 2, 8, 8]\n"
      "parameter @k: f32[4, 2, 3, 3]\n"
      "parameter @scale: f32[4]\n"
      "parameter @shift: f32[4]\n"
      "buffer @mean: f32[4]\n"
      "buffer @steps: i64[]\n"
      "%c = aten::conv2d(%x, @k, none, [1, 1], [1, 1])\n"
      "%b, %m, %inverse = aten::native_batch_norm(%c, @scale, @shift, none, none, true, 0.1, 1e-5)\n"
      "%old = aten::mul.Tensor(@mean, 0.9)\n"
      "%new = aten::add.Tensor(%old, %m, alpha=0.1)\n"
      "%next = aten::add.Scalar(@steps, 1)\n"
      "@mean <- %new\n"
      "@steps <- %next\n"
      "%r = aten::relu(%b)\n"
      "%p = aten::max_pool2d(%r, [2, 2])\n"
      "%loss = aten::mean(%p)\n"
      "return %loss\n");
  check_gradients(program, {"k", "scale", "shift"}, {{at::randn({4, 2, 8, 8})}, {at::randn({3, 2, 8, 8})}});
}

TEST_CASE("a variance over the batch, whose derivative divides two by a size") {
  at::manual_seed(0);
  const Program program = parse_with_random_weights(
      "dim n in 1..64\n"
      "input %x: f32[n, 6]\n"
      "parameter @w: f32[5, 6]\n"
      "%h = aten::linear(%x, @w)\n"
      "%loss = aten::var(%h, true)\n"
      "return %loss\n");
  check_gradients(program, {"w"}, {{at::randn({4, 6})}, {at::randn({1, 6})}, {at::randn({17, 6})}});
}

TEST_CASE("attention with layer norm and residual; a tied weight sums its gradients") {
  at::manual_seed(0);
  const Program program = parse_with_random_weights(
      "dim n in 1..16\n"
      "input %ids: i64[n, 7]\n"
      "parameter @table: f32[11, 8]\n"
      "parameter @scale: f32[8]\n"
      "parameter @shift: f32[8]\n"
      "%e = aten::embedding(@table, %ids)\n"
      "%y = aten::layer_norm(%e, [8], @scale, @shift)\n"
      "%q = aten::unsqueeze(%y, 1)\n"
      "%a = aten::scaled_dot_product_attention(%q, %q, %q)\n"
      "%s = aten::squeeze.dim(%a, 1)\n"
      "%z = aten::add.Tensor(%s, %e)\n"
      "%logits = aten::linear(%z, @table)\n"
      "%flat = aten::flatten.using_ints(%logits, 0, 1)\n"
      "%next = aten::flatten.using_ints(%ids, 0, 1)\n"
      "%loss = aten::cross_entropy_loss(%flat, %next)\n"
      "return %loss\n");
  const auto batch = [](int64_t size) { return Tensors{at::randint(0, 11, {size, 7}, at::kLong)}; };
  check_gradients(program, {"table", "scale", "shift"}, {batch(3), batch(5), batch(1)});
}

TEST_CASE("dropout draws the numbers that autograd would draw") {
  at::manual_seed(0);
  const Program program = parse_with_random_weights(
      "training\n"
      "dim n in 1..64\n"
      "input %x: f32[n, 6]\n"
      "parameter @w: f32[5, 6]\n"
      "%h = aten::linear(%x, @w)\n"
      "%d = aten::dropout(%h, 0.5, true)\n"
      "%loss = aten::sum(%d)\n"
      "return %loss\n");
  check_gradients(program, {"w"}, {{at::randn({4, 6})}, {at::randn({10, 6})}});
}

TEST_CASE("a weight that the loss does not depend on has no gradient") {
  const Program program = parse_with_random_weights(
      "input %x: f32[2, 3]\n"
      "parameter @w: f32[4, 3]\n"
      "parameter @other: f32[3]\n"
      "%h = aten::linear(%x, @w)\n"
      "%o = aten::mul.Tensor(@other, 2.0)\n"
      "%loss = aten::sum(%h)\n"
      "return %loss, %o\n");
  const Program joined = check_gradients(program, {"w", "other"}, {{at::randn({2, 3})}});
  CHECK(joined.outputs[3].value.is_none());
}

TEST_CASE("weights beside each other in one storage are not tied; those that overlap otherwise are refused") {
  Program program = parse_with_random_weights(
      "input %x: f32[2, 3]\n"
      "parameter @a: f32[4, 3]\n"
      "parameter @b: f32[4]\n"
      "%h = aten::linear(%x, @a, @b)\n"
      "%loss = aten::sum(%h)\n"
      "return %loss\n");
  const at::Tensor storage = at::rand({20});
  program.weights[0].tensor = storage.narrow(0, 0, 12).view({4, 3});
  program.weights[1].tensor = storage.narrow(0, 12, 4);
  check_gradients(program, {"a", "b"}, {{at::randn({2, 3})}});
  program.weights[1].tensor = storage.narrow(0, 11, 4);
  EXPECT_ERROR(unsupported, differentiate_program(program, {"a", "b"}, {at::ones({2, 3})}), "'a' and 'b' share memory");
}

TEST_CASE("gradients of several runs are not in memory at once") {
  const Program program = parse_with_random_weights(
      "dim n in 2..64\n"
      "input %x: f32[n, 2048]\n"
      "parameter @w: f32[4096, 2048]\n"
      "%h = aten::linear(%x, @w)\n"
      "%loss = aten::sum(%h)\n"
      "return %loss\n");
  const int64_t weight = find_tensor(program, "w").nbytes();
  const Tensors example{at::ones({4, 2048})};
  differentiate_program(program, {"w"}, example);  // libtorch's own buffers
  REQUIRE(reset_resident_peak());
  const int64_t before = read_resident_memory().now;
  differentiate_program(program, {"w"}, example);
  // The state as it was, what the original gives and what the program gives, a copy while it is taken.
  CHECK(read_resident_memory().peak - before < 5 * weight);
}

TEST_CASE("what cannot be differentiated is refused by name") {
  const Program program = parse_with_random_weights(
      "input %x: f32[2, 3]\n"
      "parameter @w: f32[4, 3]\n"
      "parameter @table: i64[4]\n"
      "%h = aten::linear(%x, @w)\n"
      "%loss = aten::sum(%h)\n"
      "return %loss, %h\n");
  const Tensors example{at::ones({2, 3})};
  EXPECT_ERROR(invalid_input, differentiate_program(program, {"v"}, example), "no weight 'v'");
  EXPECT_ERROR(invalid_input, differentiate_program(program, {"table"}, example), "table", "i64", "no gradient");
  EXPECT_ERROR(invalid_input, differentiate_program(program, {"w"}, {}), "0 examples for 1 inputs");
  Program vector = program;
  std::swap(vector.outputs[0], vector.outputs[1]);
  EXPECT_ERROR(invalid_input, differentiate_program(vector, {"w"}, example), "first output", "[2, 4]");
  const at::Tensor weight = find_tensor(program, "w");
  CHECK_FALSE(weight.requires_grad());
}

TEST_CASE("control ops that cannot be trained through are refused as the user wrote them") {
  const std::string start =
      "input %x: f32[2, 4]\n"
      "parameter @w: f32[4, 4]\n"
      "%h: f32[2, 4] = aten::linear(%x, @w)\n";
  const std::string end =
      "%loss: f32[] = aten::mean(%y)\n"
      "return %loss\n";
  const auto differentiate = [&](const std::string& control) {
    differentiate_program(parse_with_random_weights(start + control + end), {"w"}, {at::ones({2, 4})});
  };
  const auto vmapped = [&] {
    differentiate(
        "%y: f32[2, 4] = lissome::region(\"vmap=error;0;0\", %h) {\n"
        "  input %row: f32[4]\n"
        "  %twice: f32[4] = aten::mul.Tensor(%row, 2)\n"
        "  return %twice\n"
        "}  # net.py:7 in rows (Rows): \"torch.vmap(f)(h)\"\n");
  };
  EXPECT_ERROR(unsupported, vmapped(), "cannot train through torch.vmap in Rows rows (net.py:7)", "the whole batch");
  const auto chosen = [&] {
    differentiate(
        "%sum: f32[] = aten::sum(%h)\n"
        "%right: bool[] = aten::gt.Scalar(%sum, 0)\n"
        "%y: f32[2, 4] = lissome::cond(%right, %h) {\n"
        "  input %a: f32[2, 4]\n"
        "  %b: f32[2, 4] = aten::mul.Tensor(%a, 2)\n"
        "  return %b\n"
        "} {\n"
        "  input %a: f32[2, 4]\n"
        "  %b: f32[2, 4] = aten::mul.Tensor(%a, 3)\n"
        "  return %b\n"
        "}  # net.py:9 in gate (Gate): \"cond\"\n");
  };
  EXPECT_ERROR(unsupported, chosen(), "cannot train through torch.cond in Gate gate (net.py:9): ");
}

TEST_CASE("a gradient over elements whose number follows from the data is refused by layer") {
  const Program program = parse_with_random_weights(
      "input %x: f32[2, 4]\n"
      "parameter @w: f32[4, 4]\n"
      "%h: f32[2, 4] = aten::linear(%x, @w)  # net.py:8 in head (Linear): \"h = self.head(x)\"\n"
      "%mask: bool[2, 4] = aten::gt.Scalar(%x, 0)\n"
      "%picked: f32[...] = aten::index.Tensor(%h, [%mask])  # net.py:9 in pick (Pick): \"h[x > 0]\"\n"
      "%loss: f32[] = aten::mean(%picked)\n"
      "return %loss\n");
  EXPECT_ERROR(unsupported, differentiate_program(program, {"w"}, {at::ones({2, 4})}),
               "cannot train through Pick pick (net.py:9), aten::index.Tensor", "depends on the data");
  // So is what is computed of rows that were chosen by the data.
  const Program routed = parse_with_random_weights(
      "input %x: f32[2, 4]\n"
      "parameter @w: f32[4, 4]\n"
      "%mask: bool[2, 4] = aten::gt.Scalar(%x, 0)\n"
      "%indices: i64[...] = aten::nonzero(%mask)\n"
      "%rows: i64[...] = aten::select.int(%indices, 1, 0)\n"
      "%chosen: f32[...] = aten::index.Tensor(%x, [%rows])\n"
      "%h: f32[...] = aten::linear(%chosen, @w)  # net.py:7 in expert (Linear): \"self.expert(x[rows])\"\n"
      "%zeros: f32[2, 4] = aten::zeros_like(%x)\n"
      "%sum: f32[2, 4] = aten::index_add(%zeros, 0, %rows, %h)\n"
      "%loss: f32[] = aten::mean(%sum)\n"
      "return %loss\n");
  EXPECT_ERROR(unsupported, differentiate_program(routed, {"w"}, {at::ones({2, 4})}),
               "cannot train through Linear expert (net.py:7)", "depends on the data");
  // Without a gradient they may come and go.
  const Program beside = parse_with_random_weights(
      "input %x: f32[2, 4]\n"
      "parameter @w: f32[4, 4]\n"
      "%h: f32[2, 4] = aten::linear(%x, @w)\n"
      "%mask: bool[2, 4] = aten::gt.Scalar(%x, 0)\n"
      "%picked: f32[...] = aten::index.Tensor(%x, [%mask])\n"
      "%loss: f32[] = aten::mean(%h)\n"
      "return %loss, %picked\n");
  CHECK_NOTHROW(differentiate_program(beside, {"w"}, {at::ones({2, 4})}));
}

TEST_CASE("medians and products, whose own derivatives read numbers, have autograd's gradients") {
  struct Case {
    const char* op;
    std::vector<float> factors;  // of the rows of x
  };
  const std::vector<float> plain{0.5F, -2, 3, 1.5F}, zeros{0.5F, 0, 3, 0}, zero{0.5F, -2, 0, 3}, ties{2, 2, 2, 1};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Case> cases = {
      {"aten::prod(%h)", plain},
      {"aten::prod(%h)", zero},
      {"aten::prod(%h)", zeros},
      {"aten::prod.dim_int(%h, dim=0)", zero},
      {"aten::prod.dim_int(%h, dim=-1, keepdim=true)", plain},
      {"aten::cumprod(%h, dim=0)", plain},
      {"aten::cumprod(%h, dim=0)", zeros},
      {"aten::cumprod(%h, dim=1)", zero},
      {"aten::median(%h)", plain},
      {"aten::median(%h)", ties},
      {"aten::nanmedian(%h)", ties},
      {"aten::nanmedian(%h)", {2, nan, 2, 1}},
      {"aten::nanmedian(%h)", {nan, nan, nan, nan}},
  };
  for (const auto& [op, factors] : cases) {
    CAPTURE(op);
    CAPTURE(factors[1]);
    const Program program = parse_program(std::string("input %x: f32[n, 3]\ndim n in 1..\n") +
                                              "parameter @w: f32[3]\n"
                                              "%h: f32[n, 3] = aten::mul.Tensor(%x, @w)\n"
                                              "%y: f32[...] = " +
                                              op +
                                              "\n%s: f32[...] = aten::square(%y)\n"
                                              "%loss: f32[] = aten::sum(%s)\n"
                                              "return %loss\n",
                                          {{"w", at::ones({3})}});
    const at::Tensor x = at::ones({4, 3}).mul(at::tensor(factors).unsqueeze(1));
    const Program joined = differentiate_program(program, {"w"}, {at::rand({3, 3})});
    const Tensors wanted = differentiate_directly(program, {"w"}, {x});
    const auto seen = interpret(joined, {x});
    for (size_t i = 0; i < wanted.size(); ++i)
      CHECK(at::allclose(seen[i].toTensor(), wanted[i], 1e-5, 1e-6, /*equal_nan=*/true));
  }
}

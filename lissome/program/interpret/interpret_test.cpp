// What programs mean: against direct ATen calls, with control flow, gradients, state and errors.
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include "lissome/program.h"
#include "tests/expect_error.h"

namespace lissome {
namespace {

const at::TensorOptions kF32 = at::TensorOptions().dtype(at::kFloat);

at::Tensor run_one(const Program& program, std::vector<c10::IValue> inputs, const InterpretOptions& options = {}) {
  const auto outputs = interpret(program, std::move(inputs), options);
  REQUIRE(outputs.size() == 1);
  return outputs[0].toTensor();
}

std::string refusal(const Program& program, std::vector<c10::IValue> inputs,
                    ErrorKind kind = ErrorKind::invalid_input) {
  try {
    interpret(program, std::move(inputs));
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.message();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a program built by hand does what its ops do") {
  const at::Tensor weight = at::randn({4, 3}, kF32), bias = at::randn({4}, kF32), x = at::randn({2, 3}, kF32);
  Program program;
  const ValueId input = program.add_input("x", {ValueKind::tensor, Dtype::f32, true, {2, 3}});
  const ValueId w = program.add_weight("w", weight, WeightRole::parameter);
  const ValueId b = program.add_weight("b", bias, WeightRole::parameter);
  const ValueType type{ValueKind::tensor, Dtype::f32, true, {2, 4}};
  const ValueId sums = program.add_node(Op::find("aten::linear"), {input, w, b}, {type}).result();
  const ValueId result = program.add_node(Op::find("aten::relu"), {sums}, {type}).result();
  program.outputs.push_back({result, "output.0"});
  verify_program(program, Stage::optimized);
  CHECK(at::equal(run_one(program, {x}), at::relu(at::linear(x, weight, bias))));
}

TEST_CASE("arguments take the form that the schema wants") {
  const Program program = parse_program(
      "dim n in 1..64\n"
      "input %x: f32[n, 6]\n"
      "%n: int = aten::sym_size.int(%x, 0)\n"
      "%half: int = lissome::sym_floordiv(%n, 2)\n"
      "%a: f32[...] = aten::view(%x, [%half, 2, -1])\n"  // ints and values mixed
      "%b: f32[...] = aten::add.Tensor(%a, 2)\n"         // a number for a tensor, an int for a float
      "%c: f32[...] = aten::sum.dim_IntList(%b, 1)\n"    // one int for a list
      "%d: f64[...] = aten::to.dtype(%c, f64)\n"         // a dtype for an int
      "%m: bool[...] = aten::gt.Scalar(%d, 0.0)\n"
      "%e: f64[...] = aten::index.Tensor(%d, [none, %m])\n"
      "return %d, %e\n");
  const at::Tensor x = at::randn({4, 6}, kF32);
  Program first = program;
  first.outputs.resize(1);
  first.nodes.pop_back();
  CHECK(at::equal(run_one(first, {x}), x.view({2, 2, -1}).add(2).sum(1).to(at::kDouble)));
}

TEST_CASE("a wrapped number does not widen what it meets") {
  const Program program = parse_program("input %x: f16[3]\n%0: f16[3] = aten::mul.Tensor(%x, 2.5)\nreturn %0\n");
  CHECK((run_one(program, {at::ones({3}, kF32).to(at::kHalf)}).scalar_type() == at::kHalf));
}

TEST_CASE("states and weights of an LSTM that do not belong together are refused") {
  const auto make = [](const std::string& hidden, const std::string& cell, const std::string& weight,
                       const std::string& bias) {
    return parse_program("input %x: f32[4, 2, 6]\ninput %h: f32[" + hidden + "]\ninput %c: f32[" + cell +
                         "]\ninput %a: f32[20, 6]\ninput %b: f32[" + weight + "]\ninput %d: f32[" + bias +
                         "]\n%0: f32[4, 2, 5], %1: f32[1, 2, 5], %2: f32[1, 2, 5] = aten::lstm.input(%x, [%h, %c], "
                         "[%a, %b, %d, %d], true, 1, 0.0, false, false, false)\nreturn %0\n");
  };
  const auto run = [&](std::vector<int64_t> hidden, std::vector<int64_t> cell, std::vector<int64_t> weight,
                       std::vector<int64_t> bias) {
    const auto join = [](const std::vector<int64_t>& sizes) {
      std::string text;
      for (const int64_t size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
      return text;
    };
    return refusal(make(join(hidden), join(cell), join(weight), join(bias)),
                   {at::randn({4, 2, 6}, kF32), at::zeros(hidden, kF32), at::zeros(cell, kF32),
                    at::randn({20, 6}, kF32), at::randn(weight, kF32), at::randn(bias, kF32)});
  };
  const std::vector<int64_t> state = {1, 2, 5}, weight = {20, 5}, bias = {20};
  CHECK(run(state, state, weight, bias) == "accepted");
  CHECK(mentions(run({1, 1, 5}, state, weight, bias), "the hidden state must be [1, 2, 5], not [1, 1, 5]"));
  CHECK(mentions(run(state, {1, 1, 5}, weight, bias), "the cell state must be [1, 2, 5], not [1, 1, 5]"));
  CHECK(mentions(run({1, 2, 1}, {1, 2, 1}, weight, bias), "the input weights must be [4, 6], not [20, 6]"));
  CHECK(mentions(run(state, state, {20, 1}, bias), "the hidden weights must be [20, 5], not [20, 1]"));
  CHECK(mentions(run(state, state, weight, {1}), "the biases must be [20], not [1]"));
  CHECK(mentions(run({1, 2, 3}, state, weight, bias), "4 weights do not make 1 layers of 1 directions"));
  const Program inner = parse_program(
      "input %x: f32[4, 2, 6]\ninput %a: f32[20, 6]\ninput %b: f32[20, 5]\ninput %d: f32[20]\n"
      "input %h: f32[1, 1, 1]\n"
      "%0: f32[4, 2, 5], %1: f32[1, 2, 5], %2: f32[1, 2, 5], %3: u8[0] = aten::mkldnn_rnn_layer(%x, %a, %b, %d, %d, "
      "%h, %h, false, [], 2, 5, 1, true, false, false, false)\nreturn %0\n");
  try {
    judge_program(inner);
    FAIL("the inner op of aten::lstm, which checks no sizes, was accepted");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::unsupported);
    CHECK(mentions(error.message(), "aten::mkldnn_rnn_layer is not on the list"));
  }
}

TEST_CASE("values die at their last use") {
  const Program program = parse_program(
      "input %x: f32[8]\n"
      "%a: f32[8] = aten::neg(%x)\n"
      "%b: f32[8] = aten::exp(%a)\n"
      "%c: f32[8] = aten::neg(%b)\n"
      "return %c\n");
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> seen;
  std::vector<size_t> alive;
  InterpretOptions options;
  options.observe = [&](const Node&, std::span<const c10::IValue> results) {
    seen.emplace_back(results[0].toTensor().getIntrusivePtr());
    size_t count = 0;
    for (const auto& one : seen) count += one.use_count() > 0;
    alive.push_back(count);
  };
  run_one(program, {at::randn({8}, kF32)}, options);
  CHECK((alive == std::vector<size_t>{1, 1, 1}));
}

TEST_CASE("gradients flow when asked for, and not otherwise") {
  const Program program = parse_program(
      "input %x: f32[3]\n"
      "%a: f32[3] = lissome::region(\"grad=0\", %x) {\n"
      "  input %x: f32[3]\n"
      "  %0: f32[3] = aten::mul.Tensor(%x, 2.0)\n"
      "  return %0\n"
      "}\n"
      "%b: f32[3] = aten::mul.Tensor(%a, %x)\n"
      "return %b\n");
  at::Tensor x = at::ones({3}, kF32).requires_grad_();
  CHECK_FALSE(run_one(program, {x}).requires_grad());
  run_one(program, {x}, {.gradients = true}).sum().backward();
  // The region's part is a constant: d(a x)/dx = a = 2.
  CHECK(at::equal(x.grad(), at::ones({3}, kF32).mul(2)));
}

TEST_CASE("autocast regions cast for their body alone") {
  const Program program = parse_program(
      "input %x: f32[2, 3]\n"
      "input %w: f32[4, 3]\n"
      "%a: bf16[2, 4] = lissome::region(\"autocast=cpu,bf16,1\", %x, %w) {\n"
      "  input %x: f32[2, 3]\n"
      "  input %w: f32[4, 3]\n"
      "  %0: bf16[2, 4] = aten::linear(%x, %w)\n"
      "  return %0\n"
      "}\n"
      "%b: f32[2, 4] = aten::linear(%x, %w)\n"
      "return %a, %b\n");
  const auto outputs = interpret(program, {at::randn({2, 3}, kF32), at::randn({4, 3}, kF32)});
  CHECK((outputs[0].toTensor().scalar_type() == at::kBFloat16));
  CHECK((outputs[1].toTensor().scalar_type() == at::kFloat));
}

TEST_CASE("cond takes the branch that the condition says") {
  const Program program = parse_program(
      "input %p: bool[]\n"
      "input %x: f32[2]\n"
      "%0: f32[2] = lissome::cond(%p, %x) {\n"
      "  input %a: f32[2]\n"
      "  %0: f32[2] = aten::neg(%a)\n"
      "  return %0\n"
      "} {\n"
      "  input %a: f32[2]\n"
      "  %0: f32[2] = aten::exp(%a)\n"
      "  return %0\n"
      "}\n"
      "return %0\n");
  const at::Tensor x = at::randn({2}, kF32);
  CHECK(at::equal(run_one(program, {at::scalar_tensor(true, at::kBool), x}), x.neg()));
  CHECK(at::equal(run_one(program, {at::scalar_tensor(false, at::kBool), x}), x.exp()));
}

TEST_CASE("while_loop carries values until its condition fails") {
  const Program program = parse_program(
      "input %x: f32[2]\n"
      "input %start: i64[]\n"
      "input %step: f32[]\n"
      "%i: i64[], %y: f32[2] = lissome::while_loop(2, %start, %x, %step) {\n"
      "  input %i: i64[]\n"
      "  input %y: f32[2]\n"
      "  input %step: f32[]\n"
      "  %0: bool[] = aten::lt.Scalar(%i, 5)\n"
      "  return %0\n"
      "} {\n"
      "  input %i: i64[]\n"
      "  input %y: f32[2]\n"
      "  input %step: f32[]\n"
      "  %0: i64[] = aten::add.Tensor(%i, 1)\n"
      "  %1: f32[2] = aten::add.Tensor(%y, %step)\n"
      "  return %0, %1\n"
      "}\n"
      "return %i, %y\n");
  verify_program(program, Stage::ready);
  const at::Tensor x = at::zeros({2}, kF32);
  const auto outputs = interpret(program, {x, at::scalar_tensor(2, at::kLong), at::scalar_tensor(0.5f, at::kFloat)});
  CHECK(outputs[0].toTensor().item<int64_t>() == 5);
  CHECK(at::equal(outputs[1].toTensor(), at::ones({2}, kF32).mul(1.5)));
}

TEST_CASE("map stacks, scan carries and stacks, either way round") {
  const Program map = parse_program(
      "input %xs: f32[3, 2]\n"
      "input %y: f32[2]\n"
      "%0: f32[3, 2] = lissome::map(1, %xs, %y) {\n"
      "  input %x: f32[2]\n"
      "  input %y: f32[2]\n"
      "  %0: f32[2] = aten::mul.Tensor(%x, %y)\n"
      "  return %0\n"
      "}\n"
      "return %0\n");
  const at::Tensor xs = at::randn({3, 2}, kF32), y = at::randn({2}, kF32);
  CHECK(at::equal(run_one(map, {xs, y}), xs.mul(y)));
  for (const bool reverse : {false, true}) {
    const Program scan = parse_program(
        "input %carry: f32[2]\n"
        "input %xs: f32[3, 2]\n"
        "%last: f32[2], %sums: f32[3, 2] = lissome::scan(1, 1, " +
        std::string(reverse ? "true" : "false") +
        ", %carry, %xs) {\n"
        "  input %carry: f32[2]\n"
        "  input %x: f32[2]\n"
        "  %0: f32[2] = aten::add.Tensor(%carry, %x)\n"
        "  return %0, %0\n"
        "}\n"
        "return %last, %sums\n");
    const auto outputs = interpret(scan, {at::zeros({2}, kF32), xs});
    const at::Tensor expected = reverse ? xs.flip({0}).cumsum(0).flip({0}) : xs.cumsum(0);
    CHECK(at::allclose(outputs[1].toTensor(), expected));
    CHECK(at::allclose(outputs[0].toTensor(), xs.sum(0)));
  }
}

TEST_CASE("vmap runs a body over examples, nested, with the randomness that it names") {
  const at::Tensor x = at::randn({3, 5}, kF32), y = at::randn({5, 3}, kF32);
  const auto map = [](const std::string& mode, const std::string& result, const std::string& body) {
    return parse_program("input %x: f32[3, 5]\ninput %y: f32[5, 3]\n%r: " + result +
                         " = lissome::region(\"vmap=" + mode + "\", %x, %y) {\ninput %a: f32[5]\ninput %b: f32[...]\n" +
                         body + "return %c\n}\nreturn %r\n");
  };
  const std::string sum = "%c: f32[5] = aten::add.Tensor(%a, %b)\n";
  CHECK(at::equal(run_one(map("error;0,1;0", "f32[3, 5]", sum), {x, y}), x.add(y.t())));
  CHECK(at::equal(run_one(map("error;-2,-1;-1", "f32[5, 3]", sum), {x, y}), x.t().add(y)));
  // A rule that looks at its second tensor, too.
  CHECK(at::equal(run_one(map("error;0,1;0", "f32[3, 5]", "%c: f32[5] = aten::to.other(%a, %b)\n"), {x, y}), x));
  // What no mapped operand reaches is the same for all.
  const std::string shared = "%c: f32[5, 3] = aten::neg(%b)\n";
  CHECK(at::equal(run_one(map("error;0,-;1", "f32[5, 3, 3]", shared), {x, y}), y.neg().unsqueeze(1).expand({5, 3, 3})));
  const std::string nested =
      "%c: f32[3, 5] = lissome::region(\"vmap=error;-,1;0\", %a, %b) {\ninput %d: f32[5]\ninput %e: f32[5]\n"
      "%f: f32[5] = aten::mul.Tensor(%d, %e)\nreturn %f\n}\n";
  CHECK(at::equal(run_one(map("error;0,-;0", "f32[3, 3, 5]", nested), {x, y}), x.unsqueeze(1).mul(y.t().unsqueeze(0))));
  const std::string noise = "%c: f32[5] = aten::rand_like(%a)\n";
  const at::Tensor same = run_one(map("same;0,1;0", "f32[3, 5]", noise), {x, y});
  CHECK(at::equal(same[0], same[1]));
  const at::Tensor different = run_one(map("different;0,1;0", "f32[3, 5]", noise), {x, y});
  CHECK_FALSE(at::equal(different[0], different[1]));
  CHECK(refusal(map("error;0,1;0", "f32[3, 5]", noise), {x, y}).find("randomness") != std::string::npos);
}

TEST_CASE("state is written when asked, and left alone otherwise") {
  Program program = parse_program(
      "input %x: f32[2]\n"
      "buffer @count: f32[2]\n"
      "%0: f32[2] = aten::add.Tensor(@count, %x)\n"
      "@count <- %0\n"
      "return @count, %0\n");
  const at::Tensor count = program.weights[0].tensor, x = at::ones({2}, kF32);
  interpret(program, {x});
  CHECK(at::equal(count, at::zeros({2}, kF32)));
  std::vector<at::Tensor> written;
  interpret(program, {x}, {.written = &written});
  REQUIRE(written.size() == 1);
  CHECK(at::equal(written[0], x));
  CHECK(at::equal(count, at::zeros({2}, kF32)));
  const auto outputs = interpret(program, {x}, {.write_state = true});
  CHECK(at::equal(count, x));
  // What was returned is what it was before the write.
  CHECK(at::equal(outputs[0].toTensor(), at::zeros({2}, kF32)));
}

TEST_CASE("a state takes no tensor of another layout") {
  const Program program = parse_program(
      "input %x: f32[3, 3]\n%packed: f32[3, 3] = mkldnn::_reorder_linear_weight(%x)\n%x <- %packed\nreturn %x\n");
  EXPECT_ERROR(invalid_input, interpret(program, {at::ones({3, 3})}, {.write_state = true}), "layout Mkldnn");
}

TEST_CASE("two states can be exchanged") {
  Program program = parse_program(
      "input %x: f32[1]\n"
      "buffer @a: f32[1]\n"
      "buffer @b: f32[1]\n"
      "@a <- @b\n"
      "@b <- @a\n"
      "return %x\n");
  program.weights[0].tensor.fill_(1);
  program.weights[1].tensor.fill_(2);
  interpret(program, {at::zeros({1}, kF32)}, {.write_state = true});
  CHECK(program.weights[0].tensor.item<float>() == 2);
  CHECK(program.weights[1].tensor.item<float>() == 1);
}

TEST_CASE("barriers write copies unless state may be written") {
  const Program program = parse_program(
      "input %x: f32[4]\n"
      "buffer @b: f32[4]\n"
      "%v: f32[2] = aten::slice.Tensor(@b, 0, 0, 2)\n"
      "%0: f32[2] = aten::add_.Tensor(%v, 1.0)\n"
      "%1: f32[4] = aten::mul_.Tensor(%x, 3.0)\n"
      "return @b, %x\n");
  const at::Tensor x = at::ones({4}, kF32), b = program.weights[0].tensor;
  const auto outputs = interpret(program, {x});
  CHECK(at::equal(outputs[0].toTensor(), at::tensor({1.0f, 1.0f, 0.0f, 0.0f})));
  CHECK(at::equal(outputs[1].toTensor(), at::ones({4}, kF32).mul(3)));
  CHECK(at::equal(x, at::ones({4}, kF32)));
  CHECK(at::equal(b, at::zeros({4}, kF32)));
  interpret(program, {x}, {.write_state = true});
  CHECK(at::equal(x, at::ones({4}, kF32).mul(3)));
  CHECK(at::equal(b, at::tensor({1.0f, 1.0f, 0.0f, 0.0f})));
}

TEST_CASE("inputs that do not fit are refused with name, seen and allowed") {
  const Program program = parse_program(
      "dim n in 2..8\n"
      "input %x: f32[n, 3]\n"
      "input %y: f32[2*n]\n"
      "return %x\n");
  const at::Tensor x = at::zeros({4, 3}, kF32), y = at::zeros({8}, kF32);
  CHECK(interpret(program, {x, y}).size() == 1);
  CHECK(mentions(refusal(program, {x}), "takes 2 inputs (x, y), not 1"));
  CHECK(mentions(refusal(program, {x, 3}), "input 'y' is an integer, the model takes a tensor"));
  CHECK(mentions(refusal(program, {x.to(at::kDouble), y}), "input 'x' has element type f64, the model takes f32"));
  CHECK(mentions(refusal(program, {at::zeros({4, 5}, kF32), y}),
                 "input 'x' has size 5 at dimension 1, the model takes 3"));
  CHECK(mentions(refusal(program, {at::zeros({3}, kF32), y}), "input 'x' has sizes [3], the model takes [n, 3]"));
  CHECK(mentions(refusal(program, {x, at::zeros({7}, kF32)}),
                 "input 'y' has size 7 at dimension 0, the model takes 2*n = 8"));
  CHECK(mentions(refusal(program, {at::zeros({9, 3}, kF32), at::zeros({18}, kF32)}),
                 "input 'x' has size 9 at dimension 0; there the model's n is at least 2 and at most 8"));
}

TEST_CASE("a dimension that stands in an expression alone is solved for") {
  const Program program = parse_program("dim n in 1..100\ninput %x: f32[3*n + 1]\nreturn %x\n");
  const std::vector<c10::IValue> inputs = {at::zeros({16}, kF32)};
  CHECK(bind_dimensions(program, inputs).at("n") == 5);
  CHECK(mentions(refusal(program, {at::zeros({17}, kF32)}), "the model takes 3*n + 1"));
}

TEST_CASE("a failing node names op, module and line") {
  const Program program = parse_program(
      "input %x: f32[...]\n"
      "parameter @w: f32[4, 3]\n"
      "%0: f32[...] = aten::linear(%x, @w)  # net.py:8 in fc (Linear): \"x = self.fc(x)\"\n"
      "return %0\n");
  const std::string message = refusal(program, {at::zeros({2, 5}, kF32)});
  CHECK(mentions(message, "aten::linear of fc (net.py:8)"));
  CHECK(mentions(message, "mat1 and mat2"));
}

TEST_CASE("asserts are run") {
  const Program program = parse_program(
      "input %x: i64[]\n"
      "%n: int = aten::item(%x)\n"
      "%ok: bool = lissome::sym_ge(%n, 2)\n"
      "aten::_assert_scalar(%ok, \"n is too small\")\n"
      "return %n\n");
  CHECK(interpret(program, {at::scalar_tensor(3, at::kLong)})[0].toInt() == 3);
  CHECK(mentions(refusal(program, {at::scalar_tensor(1, at::kLong)}), "n is too small"));
}

TEST_CASE("one node runs alone") {
  const Program program = parse_program("input %x: f32[2]\n%0: f32[2] = aten::add.Tensor(%x, 1)\nreturn %0\n");
  const at::Tensor x = at::ones({2}, kF32);
  const std::vector<c10::IValue> arguments = {x, 1, 2};
  CHECK(at::equal(interpret_node(program.nodes[0], arguments)[0].toTensor(), x.add(2)));
}

TEST_CASE("uses and last uses") {
  const Program program = parse_program(
      "input %x: f32[2]\n"
      "input %unused: f32[2]\n"
      "%a: f32[2] = aten::neg(%x)\n"
      "%b: f32[2] = aten::add.Tensor(%a, %a)\n"
      "return %b\n");
  const Uses uses = find_uses(program);
  const auto id = [&](std::string_view name) { return *program.find_value(name); };
  CHECK(uses.count(id("a")) == 2);
  CHECK(uses.count(id("unused")) == 0);
  CHECK(uses.producer[static_cast<size_t>(id("b"))] == 1);
  const std::vector<int> last = find_last_uses(program);
  CHECK(last[static_cast<size_t>(id("x"))] == 0);
  CHECK(last[static_cast<size_t>(id("a"))] == 1);
  CHECK(last[static_cast<size_t>(id("b"))] == 2);
  CHECK(last[static_cast<size_t>(id("unused"))] == -1);
}

}  // namespace lissome

// Purity: each program runs twice, as it is with its in-place nodes and after purify(); outputs, inputs and state must
// be the same, and nothing in the second may write.
#include <ATen/core/ivalue.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include <ATen/CPUGeneratorImpl.h>

#include "lissome/program.h"
#include "lissome/program/purify/purify.h"
#include "tests/expect_error.h"
#include "tests/program_helpers.h"

namespace lissome {
namespace {

struct Outcome {
  std::vector<at::Tensor> tensors;  // outputs, inputs after, weights after
};

at::Tensor make_input(const ValueType& type) {
  std::vector<int64_t> sizes;
  for (const Dimension& size : type.sizes) sizes.push_back(size.constant().value_or(4));
  const at::Tensor random = at::randn(sizes, at::TensorOptions().dtype(at::kFloat));
  if (type.dtype == Dtype::boolean) return random.gt(0);
  if (is_integral(type.dtype)) return random.abs().mul(1.3).to(scalar_type_of(type.dtype)).clamp_max(1);
  return random.to(scalar_type_of(type.dtype));
}

void seed() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock lock(generator.mutex());
  generator.set_current_seed(7);
}

Outcome run_pure(Program program, const std::vector<at::Tensor>& inputs) {
  std::vector<c10::IValue> copies;
  for (const at::Tensor& input : inputs) copies.emplace_back(input.clone());
  std::map<const void*, at::Tensor> storages;
  for (Weight& weight : program.weights) {
    at::Tensor& copy = storages[weight.tensor.storage().unsafeGetStorageImpl()];
    if (!copy.defined()) copy = weight.tensor.clone();
    weight.tensor = copy;
  }
  seed();
  Outcome outcome;
  for (const c10::IValue& output : interpret(program, copies, {.write_state = true})) {
    outcome.tensors.push_back(output.toTensor().clone());
  }
  for (const c10::IValue& input : copies) outcome.tensors.push_back(input.toTensor());
  for (const Weight& weight : program.weights) outcome.tensors.push_back(weight.tensor);
  return outcome;
}

int count_writing(const Program& program) {
  int count = 0;
  for (const Node& node : program.nodes) count += find_effects(program, node).barrier() ? 1 : 0;
  return count;
}

// Runs both; `kept` nodes are expected to stay barriers. Gives the pure program.
Program check_purity(const std::string& text, int kept = 0) {
  CAPTURE(text);
  Program program = parse_program(text);
  for (Weight& weight : program.weights) {
    if (weight.tensor.is_floating_point()) weight.tensor.copy_(at::rand(weight.tensor.sizes()));
  }
  std::vector<at::Tensor> inputs;
  for (const ProgramInput& input : program.inputs) inputs.push_back(make_input(program.value(input.value).type));
  verify_program(program, Stage::imported);
  REQUIRE(count_writing(program) > 0);
  Program pure = program;
  purify(pure);
  CAPTURE(print_program(pure));
  verify_program(pure, Stage::imported);
  CHECK(count_writing(pure) == kept);
  const Outcome before = run_pure(program, inputs), after = run_pure(pure, inputs);
  REQUIRE(before.tensors.size() == after.tensors.size());
  for (size_t i = 0; i < before.tensors.size(); ++i) {
    CAPTURE(i);
    CHECK((before.tensors[i].scalar_type() == after.tensors[i].scalar_type()));
    CHECK((before.tensors[i].sizes() == after.tensors[i].sizes()));
    CHECK(at::allclose(before.tensors[i], after.tensors[i], 1e-6, 1e-6, true));
  }
  return pure;
}

std::string in_place(const std::string& call, const std::string& type = "f32[4, 3]") {
  return "input %x: " + type + "\ninput %y: " + type + "\ninput %i: i64[4, 3]\ninput %m: bool[4, 3]\n%a: " + type +
         " = aten::mul.Tensor(%x, 2)\n%b: " + type + " = " + call + "\n%c: " + type +
         " = aten::add.Tensor(%a, %b)\nreturn %a, %b, %c\n";
}

}  // namespace

TEST_CASE("in-place ops become their functional forms") {
  for (const char* call : {"aten::add_.Tensor(%a, %y)",
                           "aten::add_.Tensor(%a, 1.5, alpha=2)",
                           "aten::sub_.Tensor(%a, %y)",
                           "aten::mul_.Tensor(%a, %y)",
                           "aten::div_.Tensor(%a, %y)",
                           "aten::add_.Scalar(%a, 3)",
                           "aten::div_.Tensor_mode(%a, %y, rounding_mode=\"floor\")",
                           "aten::relu_(%a)",
                           "aten::gelu_(%a)",
                           "aten::silu_(%a)",
                           "aten::sigmoid_(%a)",
                           "aten::tanh_(%a)",
                           "aten::exp_(%a)",
                           "aten::neg_(%a)",
                           "aten::abs_(%a)",
                           "aten::leaky_relu_(%a)",
                           "aten::elu_(%a)",
                           "aten::hardtanh_(%a)",
                           "aten::hardswish_(%a)",
                           "aten::hardsigmoid_(%a)",
                           "aten::threshold_(%a, 0.0, 1.0)",
                           "aten::clamp_(%a, -1.0, 1.0)",
                           "aten::clamp_min_(%a, 0)",
                           "aten::pow_.Scalar(%a, 2)",
                           "aten::floor_(%a)",
                           "aten::round_(%a)",
                           "aten::fill_.Scalar(%a, 3)",
                           "aten::zero_(%a)",
                           "aten::copy_(%a, %y)",
                           "aten::copy_(%a, %i)",
                           "aten::masked_fill_.Scalar(%a, %m, -1.0)",
                           "aten::masked_scatter_(%a, %m, %y)",
                           "aten::lerp_.Scalar(%a, %y, 0.3)",
                           "aten::addcmul_(%a, %y, %y)",
                           "aten::index_put_(%a, [none, %k], %v)",
                           "aten::index_fill_.int_Scalar(%a, 1, %k, 2.0)",
                           "aten::index_add_(%a, 0, %k, %w)",
                           "aten::index_copy_(%a, 0, %k, %w)",
                           "aten::scatter_.src(%a, 0, %i, %y)",
                           "aten::scatter_.value(%a, 1, %i, 2.0)",
                           "aten::scatter_add_(%a, 0, %i, %y)",
                           "aten::scatter_reduce_.two(%a, 0, %i, %y, \"amax\")",
                           "aten::tril_(%a)",
                           "aten::triu_(%a, 1)",
                           "aten::cumsum_(%a, 1)",
                           "aten::eq_.Tensor(%a, %y)",
                           "aten::gt_.Scalar(%a, 0.5)",
                           "aten::logical_not_(%a)",
                           "aten::detach_(%a)",
                           "aten::fill_diagonal_(%a, 7)",
                           "aten::nan_to_num_(%a)",
                           "aten::sqrt_(%a)",
                           "aten::fmod_.Scalar(%a, 2)",
                           "aten::remainder_.Scalar(%a, 2)",
                           "aten::float_power_.Scalar(%d, 2)"}) {
    std::string text = in_place(call);
    if (std::string(call).find("%d") != std::string::npos) {
      text = "input %x: f64[4]\n%d: f64[4] = aten::mul.Tensor(%x, 2)\n%b: f64[4] = " + std::string(call) +
             "\nreturn %d, %b\n";
    }
    // Operands of other sizes than x, as inputs of their own.
    if (std::string(call).find("%k") != std::string::npos) {
      text = "constant @k: i64[2]\ninput %v: f32[4, 2]\ninput %w: f32[2, 3]\n" + text;
      for (size_t at = text.find("%k"); at != std::string::npos; at = text.find("%k", at + 1)) text[at] = '@';
    }
    Program pure = check_purity(text);
    CHECK(pure.writes.empty());
  }
}

TEST_CASE("what goes into an out argument of its own sizes becomes a result") {
  const Program pure = check_purity(
      "input %x: f32[2, 3]\n%o: f64[2, 3] = aten::zeros([2, 3], f64)\n"
      "%a: f64[2, 3] = aten::add.out(%x, %x, out=%o)\n%b: f64[2, 3] = aten::mul.out(%o, %x, out=%o)\nreturn %b, %o\n");
  for (const Node& node : pure.nodes) CHECK_FALSE(node.op.name().ends_with("out"));
  // Of other sizes it would be given new memory.
  check_purity(
      "input %x: f32[2, 3]\n%o: f32[0] = aten::zeros([0], f32)\n"
      "%a: f32[2, 3] = aten::add.out(%x, %x, out=%o)\nreturn %a\n",
      1);
}

TEST_CASE("random in-place ops draw the same numbers") {
  for (const char* call : {"aten::dropout_(%a, 0.5, true)", "aten::bernoulli_.float(%a, 0.3)", "aten::uniform_(%a)",
                           "aten::normal_(%a, 1.0, 2.0)", "aten::exponential_(%a)", "aten::random_(%a)"}) {
    check_purity(in_place(call));
  }
}

TEST_CASE("results keep the element type of what was written") {
  check_purity(in_place("aten::add_.Tensor(%a, %y)", "f16[4, 3]"));
  check_purity(
      "input %x: f16[4]\ninput %y: f32[4]\n%a: f16[4] = aten::neg(%x)\n%b: f16[4] = aten::mul_.Tensor(%a, %y)\n"
      "return %a, %b\n");
  check_purity(
      "input %x: i64[4]\ninput %y: i32[4]\n%a: i64[4] = aten::neg(%x)\n%b: i64[4] = aten::le_.Tensor(%a, %y)\n"
      "return %a, %b\n");
}

TEST_CASE("a result that claims another element type than what it writes to is refused") {
  for (const char* call : {"aten::ge_.Tensor(%a, %i)", "aten::copy_(%a, %i)", "aten::add.out(%a, %i, out=%x)"}) {
    const std::string claim = "input %x: f32[2]\ninput %i: i64[2]\n%a: f32[2] = aten::mul.Tensor(%x, 2)\n%b: ";
    Program honest = parse_program(claim + "f32[2] = " + call + "\nreturn %a, %b\n");
    purify(honest);
    Program program = parse_program(claim + "u8[2] = " + call + "\nreturn %a, %b\n");
    EXPECT_ERROR(invalid_input, purify(program), "the result is u8, and what is written is f32");
  }
}

TEST_CASE("writes through views reach the base and its other views") {
  const std::vector<std::pair<std::string, std::string>> views = {
      {"f32[3]", "aten::select.int(%a, 0, 1)"},
      {"f32[4]", "aten::select.int(%a, 1, -1)"},
      {"f32[2, 3]", "aten::slice.Tensor(%a, 0, 1, 3)"},
      {"f32[4, 2]", "aten::slice.Tensor(%a, 1, 0, 9223372036854775807, 2)"},
      {"f32[2, 3]", "aten::narrow(%a, 0, 1, 2)"},
      {"f32[2, 3]", "aten::narrow(%a, 0, -2, 2)"},
      {"f32[3]", "aten::diagonal(%a)"},
      {"f32[3, 4]", "aten::transpose.int(%a, 0, 1)"},
      {"f32[3, 4]", "aten::t(%a)"},
      {"f32[3, 4]", "aten::permute(%a, [1, 0])"},
      {"f32[3, 4]", "aten::movedim.int(%a, 0, 1)"},
      {"f32[12]", "aten::view(%a, [12])"},
      {"f32[2, 6]", "aten::reshape(%a, [2, 6])"},
      {"f32[12]", "aten::flatten.using_ints(%a)"},
      {"f32[4, 1, 3]", "aten::unsqueeze(%a, 1)"},
      {"f32[4, 3]", "aten::squeeze(%a)"},
      {"f32[4, 3]", "aten::contiguous(%a)"},
      {"f32[4, 3]", "aten::alias(%a)"},
      {"f32[4, 3]", "aten::detach(%a)"},
      {"f32[4, 3]", "aten::dropout(%a, 0.5, false)"},
      {"f32[4, 3]", "aten::to.dtype(%a, f32)"},
      {"f32[4, 3]", "aten::type_as(%a, %x)"},
      {"f32[4, 3]", "aten::expand_as(%a, %x)"},
      {"i32[4, 3]", "aten::view.dtype(%a, i32)"},
  };
  for (const auto& [type, view] : views) {
    CAPTURE(view);
    Program pure = check_purity(
        "input %x: f32[4, 3]\n%a: f32[4, 3] = aten::mul.Tensor(%x, 2)\n%other: f32[3] = "
        "aten::select.int(%a, 0, 1)\n%v: " +
        type + " = " + view + "\n%w: " + type +
        " = aten::mul_.Tensor(%v, 3)\n%sum: f32[3] = aten::add.Tensor(%other, 1)\n"
        "%again: " +
        type + " = aten::neg_(%v)\nreturn %a, %v, %w, %sum, %other\n");
    CHECK(pure.writes.empty());
  }
}

TEST_CASE("parts of a tensor that nobody else sees are written apart, as ATen's recurrent layers write them") {
  const auto write = [](const std::string& before, const std::string& after, int kept) {
    return check_purity("input %x: f32[4, 6]\n%a: f32[4, 6] = aten::mul.Tensor(%x, 2)\n" + before +
                            "%l: list = aten::unsafe_split.Tensor(%a, 3, 1)\n%p: f32[4, 3] = lissome::getitem(%l, 0)\n"
                            "%q: f32[4, 3] = lissome::getitem(%l, 1)\n%c: f32[4, 3] = aten::clone(%p)\n"
                            "%w: f32[4, 3] = aten::add_.Tensor(%p, %q)\n%v: f32[4, 3] = aten::sigmoid_(%w)\n" +
                            after,
                        kept);
  };
  const Program apart = write("", "return %c, %p, %q, %v\n", 0);
  CHECK(count_ops(apart, "aten::unsafe_split.Tensor") == 1);
  // Where the tensor is read again, or a part is taken out twice, the writes show.
  write("", "%s: f32[4] = aten::sum.dim_IntList(%a, [1])\nreturn %c, %s, %v\n", 2);
  write("%t: f32[6, 4] = aten::t(%a)\n", "return %c, %t, %v\n", 2);
  write("", "%again: f32[4, 3] = lissome::getitem(%l, 0)\nreturn %c, %again, %v\n", 2);
}

TEST_CASE("views of views and items of lists are written through") {
  check_purity(
      "input %x: f32[4, 6]\n%a: f32[4, 6] = aten::neg(%x)\n%t: f32[6, 4] = aten::t(%a)\n"
      "%s: f32[2, 4] = aten::slice.Tensor(%t, 0, 2, 4)\n%r: f32[4] = aten::select.int(%s, 0, 1)\n"
      "%f: f32[4] = aten::fill_.Scalar(%r, 9)\nreturn %a, %t, %s, %r\n");
  const std::vector<std::string> lists = {"aten::split.Tensor(%a, 2, 1)", "aten::split_with_sizes(%a, [2, 1, 3], 1)",
                                          "aten::chunk(%a, 3, 1)", "aten::chunk(%a, 3, -1)"};
  for (const std::string& list : lists) {
    check_purity("input %x: f32[4, 6]\n%a: f32[4, 6] = aten::neg(%x)\n%l = " + list +
                 "\n%first: f32[4, 2] = lissome::getitem(%l, 0)\n%second: f32[...] = lissome::getitem(%l, 1)\n"
                 "%z: f32[...] = aten::zero_(%second)\n%y: f32[4, 2] = aten::add_.Tensor(%first, 1)\n"
                 "%b: f32[4, 6] = aten::mul_.Tensor(%a, 2)\nreturn %a, %first, %second\n");
  }
  check_purity(
      "input %x: f32[2, 3]\n%a: f32[2, 3] = aten::neg(%x)\n%l = aten::unbind.int(%a, 1)\n"
      "%one: f32[2] = lissome::getitem(%l, 1)\n%w: f32[2] = aten::fill_.Scalar(%one, 5)\nreturn %a, %one\n");
}

TEST_CASE("writes through views that no call can make stay as they are") {
  const std::vector<std::pair<std::string, std::string>> views = {
      {"f32[...]", "aten::permute(%a, [-1, 1])"},
      {"f32[...]", "aten::narrow(%a, 0, 9223372036854775807, 9223372036854775807)"},
  };
  for (const auto& [type, view] : views) {
    CAPTURE(view);
    Program program = parse_program("input %x: f32[4, 6]\n%a: f32[4, 6] = aten::neg(%x)\n%v: " + type + " = " + view +
                                    "\n%w: " + type + " = aten::mul_.Tensor(%v, 3)\nreturn %a, %w\n");
    purify(program);
    CHECK(print_program(program).find("aten::mul_.Tensor") != std::string::npos);
  }
  const std::vector<std::string> lists = {
      "aten::split.Tensor(%a, 9223372036854775807, 1)",
      "aten::split_with_sizes(%a, [9223372036854775807, 9223372036854775807, 3], 1)"};
  for (const std::string& list : lists) {
    CAPTURE(list);
    Program program = parse_program("input %x: f32[4, 6]\n%a: f32[4, 6] = aten::neg(%x)\n%l = " + list +
                                    "\n%v: f32[...] = lissome::getitem(%l, 2)\n"
                                    "%w: f32[...] = aten::mul_.Tensor(%v, 3)\nreturn %a, %w\n");
    purify(program);
    CHECK(print_program(program).find("aten::mul_.Tensor") != std::string::npos);
  }
}

TEST_CASE("complex numbers are written part by part") {
  check_purity(
      "input %x: c64[3]\n%a: c64[3] = aten::neg(%x)\n%r: f32[3, 2] = aten::view_as_real(%a)\n"
      "%w: f32[3, 2] = aten::add_.Tensor(%r, 1)\nreturn %a, %r\n");
  check_purity(
      "input %x: c64[3]\n%a: c64[3] = aten::neg(%x)\n%r: f32[3] = aten::real(%a)\n%i: f32[3] = aten::imag(%a)\n"
      "%w: f32[3] = aten::add_.Tensor(%r, 1)\n%v: f32[3] = aten::mul_.Tensor(%i, 2)\nreturn %a, %r, %i\n");
}

TEST_CASE("what a tensor looks like can change in place") {
  check_purity(
      "input %x: f32[2, 3]\n%a: f32[2, 3] = aten::neg(%x)\n%v: f32[3] = aten::select.int(%a, 0, 0)\n"
      "%t: f32[3, 2] = aten::transpose_(%a, 0, 1)\n%u: f32[1, 3, 2] = aten::unsqueeze_(%a, 0)\n"
      "%w: f32[1, 3, 2] = aten::add_.Tensor(%a, 1)\nreturn %w, %v\n");
}

TEST_CASE("a look that is given by the tensor itself stays a write") {
  // Whether a number may be a tensor is checked later.
  Program program = parse_program(
      "input %x: i64[2]\n%a: i64[2] = aten::neg(%x)\n%u: i64[2, 1] = aten::unsqueeze_(%a, %a)\n"
      "%w: i64[2, 1] = aten::add_.Tensor(%a, 1)\nreturn %w\n");
  purify(program);
  CHECK(count_writing(program) == 2);
}

TEST_CASE("buffers and inputs that are written become state writes") {
  Program pure = check_purity(
      "input %x: f32[4]\nbuffer @count: i64[]\nbuffer @sum: f32[4]\n%0: i64[] = aten::add_.Tensor(@count, 1)\n"
      "%1: f32[4] = aten::add_.Tensor(@sum, %x)\n%2: f32[2] = aten::slice.Tensor(%x, 0, 0, 2)\n"
      "%3: f32[2] = aten::zero_(%2)\n%4: f32[4] = aten::add.Tensor(@sum, %x)\nreturn %4, @count\n");
  REQUIRE(pure.writes.size() == 3);
  CHECK(pure.value(pure.writes[0].target).name == "x");
}

TEST_CASE("tied buffers are one storage") {
  Program program = parse_program(
      "input %x: f32[4]\nbuffer @a: f32[4]\nbuffer @b: f32[4] tied @a\n%0: f32[4] = aten::add_.Tensor(@a, %x)\n"
      "%1: f32[4] = aten::mul_.Tensor(@b, 2)\n%2: f32[4] = aten::neg(@a)\nreturn %2, @b\n");
  REQUIRE(program.weights[0].tensor.is_alias_of(program.weights[1].tensor));
  check_purity(print_program(program));
}

TEST_CASE("norms that track statistics give them back") {
  const std::string statistics =
      "input %x: f32[4, 3, 5]\nparameter @w: f32[3]\nparameter @b: f32[3]\nbuffer @m: f32[3]\nbuffer @v: f32[3]\n";
  for (const char* call : {"aten::batch_norm(%x, @w, @b, @m, @v, true, 0.1, 1e-05, false)",
                           "aten::batch_norm(%x, none, none, @m, @v, true, 0.3, 1e-05, false)",
                           "aten::instance_norm(%x, @w, @b, @m, @v, true, 0.1, 1e-05, false)"}) {
    Program pure =
        check_purity(statistics + "%0: f32[4, 3, 5] = " + call + "\n%1: f32[3] = aten::neg(@m)\nreturn %0, %1\n");
    CHECK(pure.writes.size() == 2);
  }
  Program pure = check_purity(statistics +
                              "%0: f32[4, 3, 5], %1: f32[3], %2: f32[3] = aten::native_batch_norm(%x, @w, @b, @m, @v, "
                              "true, 0.1, 1e-05)\nreturn %0, %1, %2\n");
  CHECK(pure.writes.size() == 2);
}

TEST_CASE("norms outside of training write nothing") {
  Program program = parse_program(
      "input %x: f32[4, 3]\nbuffer @m: f32[3]\nbuffer @v: f32[3]\n"
      "%0: f32[4, 3] = aten::batch_norm(%x, none, none, @m, @v, false, 0.1, 1e-05, false)\nreturn %0\n");
  const std::string before = print_program(program);
  purify(program);
  CHECK(print_program(program) == before);
}

TEST_CASE("bodies that write their operands give them back as results") {
  Program pure = check_purity(
      "input %p: bool[]\ninput %x: f32[2]\n%a: f32[2] = aten::neg(%x)\n%0: f32[2] = lissome::cond(%p, %a, %x) {\n"
      "  input %a: f32[2]\n  input %x: f32[2]\n  %0: f32[2] = aten::add_.Tensor(%a, 1)\n"
      "  %1: f32[2] = aten::mul.Tensor(%a, %x)\n  return %1\n} {\n"
      "  input %a: f32[2]\n  input %x: f32[2]\n  %0: f32[2] = aten::neg(%a)\n  return %0\n}\n"
      "%1: f32[2] = aten::add.Tensor(%a, %0)\nreturn %1, %a\n");
  CHECK(pure.nodes[1].results.size() == 2);
  pure = check_purity(
      "input %x: f32[2]\nbuffer @b: f32[2]\n%0: f32[2] = lissome::region(\"grad=0\", @b, %x) {\n"
      "  input %b: f32[2]\n  input %x: f32[2]\n  %0: f32[2] = aten::copy_(%b, %x)\n"
      "  %1: f32[2] = aten::exp(%b)\n  return %1\n}\nreturn %0\n");
  CHECK(pure.writes.size() == 1);
  // A result that is the written operand goes by its name: a step of power iteration, as a spectral norm takes it.
  pure = check_purity(
      "input %w: f32[2, 2]\nbuffer @u: f32[2]\n%0: f32[2] = lissome::region(\"grad=0\", %w, @u) {\n"
      "  input %w: f32[2, 2]\n  input %u: f32[2]\n  %0: f32[2] = aten::mv(%w, %u)\n"
      "  %1: f32[2] = aten::div.out(%0, %0, out=%u)\n  return %1\n}\n"
      "%1: f32[2] = aten::clone(%0)\n%2: f32[2] = aten::mv(%w, %1)\nreturn %2\n");
  CHECK(pure.writes.size() == 1);
}

TEST_CASE("what cannot be told apart stays a barrier, and the rest does not") {
  // as_strided looks at the storage, whatever the base's strides are.
  Program pure = check_purity(
      "input %x: f32[4, 3]\ninput %y: f32[2]\n%a: f32[4, 3] = aten::neg(%x)\n"
      "%v: f32[2] = aten::as_strided(%a, [2], [1], 3)\n%0: f32[2] = aten::zero_(%v)\n"
      "%b: f32[2] = aten::neg(%y)\n%1: f32[2] = aten::add_.Tensor(%b, 1)\nreturn %a, %b\n",
      1);
  // A reshape of a transposed tensor: a copy or a view, the program does not say.
  check_purity(
      "input %x: f32[4, 3]\n%t: f32[3, 4] = aten::t(%x)\n%r: f32[12] = aten::reshape(%t, [12])\n"
      "%0: f32[12] = aten::add_.Tensor(%r, 1)\n%1: f32[4, 3] = aten::neg(%x)\nreturn %1, %r\n",
      1);
  // Nothing else reads it: whichever it is, the result is the same.
  check_purity(
      "input %x: f32[4, 3]\n%y: f32[4, 3] = aten::neg(%x)\n%t: f32[3, 4] = aten::t(%y)\n"
      "%r: f32[12] = aten::reshape(%t, [12])\n%0: f32[12] = aten::add_.Tensor(%r, 1)\nreturn %r\n");
}

TEST_CASE("a copy out of a barrier's tensor is not seen by later writes") {
  check_purity(
      "input %x: f32[4]\ninput %y: f32[4]\n%a: f32[4] = aten::neg(%x)\n%v: f32[2] = aten::as_strided(%a, [2], [1], 1)\n"
      "%0: f32[2] = aten::zero_(%v)\n%b: f32[4] = aten::neg(%y)\n%1: f32[4] = aten::copy_(%b, %a)\n"
      "%2: f32[2] = aten::fill_.Scalar(%v, 5)\nreturn %a, %b\n",
      2);
}

}  // namespace lissome

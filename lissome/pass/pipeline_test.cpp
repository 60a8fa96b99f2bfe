// The driver: order, switches, bodies, checks after every pass; and what prepare_inference leaves alone.
#include <ATen/core/ivalue.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include "lissome/pass.h"
#include "lissome/pass/passes.h"
#include "tests/expect_error.h"

namespace lissome {
namespace {

std::vector<std::string> seen_order;

int note_first(Program&) {
  seen_order.emplace_back("first");
  return 0;
}

int note_second(Program&) {
  seen_order.emplace_back("second");
  return 0;
}

// relu -> neg: other numbers.
int change_numbers(Program& program) {
  int count = 0;
  for (Node& node : program.nodes) {
    if (!node.is("aten::relu")) continue;
    node.op = Op::find("aten::neg");
    ++count;
  }
  return count;
}

int break_program(Program& program) {
  program.nodes.front().arguments.clear();
  return 1;
}

int read_less(Program& program) {
  program.outputs.pop_back();
  return 1;
}

constexpr Pass kNotes[] = {{"first", note_first, ""}, {"second", note_second, ""}, {"first", note_first, ""}};
constexpr Pass kLies[] = {{"lies", change_numbers, ""}};
constexpr Pass kBreaks[] = {{"breaks", break_program, ""}};
constexpr Pass kForgets[] = {{"forgets", read_less, ""}};

std::vector<std::string> list_names(const std::vector<PassResult>& results) {
  std::vector<std::string> names;
  for (const PassResult& result : results) names.push_back(result.name);
  return names;
}

std::vector<std::string> list_table() {
  std::vector<std::string> names;
  for (const Pass& pass : list_passes()) {
    if (std::find(names.begin(), names.end(), pass.name) == names.end()) names.emplace_back(pass.name);
  }
  return names;
}

const char* const kConditional =
    "%1, %2 = lissome::cond(%p: bool[], %x: f32[4]) {\n  input %x: f32[4]\n  %0: f32[4] = aten::detach(%x)\n"
    "  %1: f32[4] = aten::relu(%0)\n  %2: f32[4] = aten::neg(%0)\n  return %1, %2\n} {\n  input %x: f32[4]\n"
    "  %0: f32[4] = aten::add.Tensor(%x, 0)\n  %1: f32[4] = aten::mul.Tensor(%0, 2.0)\n  return %1, %0\n}\nreturn %1, "
    "%2\n";

TEST_CASE("passes run in the order of their table, each as often as it stands there") {
  Program program = parse_program("%1 = aten::relu(%x: f32[4])\n");
  seen_order.clear();
  const std::vector<PassResult> results = run_passes(kNotes, program, {});
  CHECK(seen_order == std::vector<std::string>{"first", "second", "first"});
  REQUIRE(results.size() == 3);
  CHECK(results[1].name == "second");
  CHECK(results[1].rewrites == 0);
  CHECK(results[1].diff.empty());
  seen_order.clear();
  run_passes(kNotes, program, {.disabled = {"first"}, .check_inputs = {}});
  CHECK(seen_order == std::vector<std::string>{"second"});
}

TEST_CASE("the rows of the table come back in order, and say what they changed") {
  Program program = parse_program(
      "%1 = aten::detach(%x: f32[N, 3])\n%2 = aten::linear(%1, @w: f32[4, 3], none)\n%3 = aten::relu(%2)\n");
  infer_types(program, {at::randn({2, 3})});
  const std::vector<PassResult> results = run_pipeline(program);
  CHECK(list_names(results) == list_table());
  for (const PassResult& result : results) {
    CHECK((result.rewrites > 0) == !result.diff.empty());
    CHECK(result.seconds >= 0);
  }
  CHECK(program.nodes.size() == 1);
  CHECK(program.nodes[0].is("lissome::linear_act"));
}

TEST_CASE("passes are switched off by name; another name is refused with the nearest") {
  const char* const text = "%1 = aten::detach(%x: f32[N, 3])\n%2 = aten::relu(%1)\n";
  Program program = parse_program(text);
  run_pipeline(program, {.disabled = {"remove_identities"}, .check_inputs = {}});
  CHECK(program.nodes.size() == 2);
  EXPECT_ERROR(usage, run_pipeline(program, {.disabled = {"remove_identitys"}, .check_inputs = {}}), "remove_identitys",
               "remove_identities", "fuse_attention");
  CHECK(find_pass("fuse_gelu")->name == "fuse_gelu");
  CHECK(find_pass("fuse_everything") == nullptr);
}

TEST_CASE("a pass that changes numbers, or leaves no program, is an internal error that names it") {
  const Program program = parse_program("%1 = aten::relu(%x: f32[4])\n%2 = aten::exp(%1)\nreturn %2, %1\n");
  const std::vector<c10::IValue> inputs = {at::ones({4})};
  Program changed = program;
  run_passes(kLies, changed, {});  // nobody looks
  changed = program;
  EXPECT_ERROR(internal, run_passes(kLies, changed, {.disabled = {}, .check_inputs = inputs}), "lies", "output 0");
  changed = program;
  EXPECT_ERROR(internal, run_passes(kForgets, changed, {.disabled = {}, .check_inputs = inputs}), "forgets", "outputs");
  changed = program;
  EXPECT_ERROR(internal, run_passes(kBreaks, changed, {}), "arguments");
}

TEST_CASE("numbers are compared with the same random draws, and the caller's draws stay") {
  Program program =
      parse_program("%1 = aten::rand_like(%x: f32[4])\n%2 = aten::add.Tensor(%1, 0)\n%3 = aten::add.Tensor(%2, %x)\n");
  infer_types(program, {at::ones({4})});
  const auto fired = run_pipeline(program, {.disabled = {}, .check_inputs = {at::ones({4})}});
  CHECK(std::any_of(fired.begin(), fired.end(), [](const PassResult& one) { return one.rewrites > 0; }));
}

TEST_CASE("bodies are entered, and those of other programs stay") {
  Program program = parse_program(kConditional);
  const Program original = program;
  const std::string before = print_program(program);
  run_pipeline(program);
  CHECK(program.nodes[0].bodies[0]->nodes.size() == 2);
  CHECK(program.nodes[0].bodies[1]->nodes.size() == 1);
  CHECK(print_program(original) == before);
  for (const int condition : {0, 1}) {
    const std::vector<c10::IValue> inputs = {at::ones({}).eq(condition), at::randn({4})};
    const auto left = interpret(original, inputs), right = interpret(program, inputs);
    CHECK(left[0].toTensor().equal(right[0].toTensor()));
    CHECK(left[1].toTensor().equal(right[1].toTensor()));
  }
}

TEST_CASE("equal calls whose results are said to have different types stay two") {
  const std::string one = "input %x: f8_e4m3fnuz[4]\n%1: u8[4] = aten::sub.Scalar(%x, 3)\n";
  for (const auto& [type, left] : {std::pair("u8", 1), std::pair("f8_e4m3fnuz", 2)}) {
    Program program = parse_program(one + "%2: " + type + "[4] = aten::sub.Scalar(%x, 3)\nreturn %1, %2\n");
    merge_common_subexpressions(program);
    CHECK(static_cast<int>(program.nodes.size()) == left);
    verify_program(program, Stage::imported);
  }
}

TEST_CASE("prepare_inference leaves the original alone, its weights' contents too") {
  Program program = parse_program(
      "training\n%1 = aten::convolution(%x: f32[2, 3, 4, 4], @w: f32[5, 3, 1, 1], none, [1, 1], [0, 0], [1, 1], false, "
      "[0, 0], 1)\n"
      "%2, _, _, %5, %6 = aten::_native_batch_norm_legit_functional(%1, none, none, @bn.running_mean: f32[5], "
      "@bn.running_var: f32[5], true, 0.1, 1e-05)\n@bn.running_mean <- %5\n@bn.running_var <- %6\nreturn %2\n");
  std::vector<at::Tensor> copies;
  for (Weight& weight : program.weights)
    copies.push_back(weight.tensor.copy_(at::randn(weight.tensor.sizes()).abs()).clone());
  infer_types(program, {at::randn({2, 3, 4, 4})});
  const std::string before = print_program(program);
  std::vector<PassResult> results;
  const Program prepared = prepare_inference(program, {}, &results);
  CHECK(print_program(program) == before);
  for (size_t i = 0; i < copies.size(); ++i) CHECK(program.weights[i].tensor.equal(copies[i]));
  CHECK_FALSE(prepared.training);
  CHECK(prepared.writes.empty());
  REQUIRE(prepared.nodes.size() == 1);
  CHECK(prepared.nodes[0].is("aten::convolution"));
  CHECK(list_names(results) == list_table());
  // A second time there is nothing left.
  const Program again = prepare_inference(prepared);
  CHECK(print_program(again) == print_program(prepared));
}

}  // namespace
}  // namespace lissome

// Program text: every literal, statement and kind of name goes out and comes back; what does not fit is refused with
// its place.
#include <ATen/core/function_schema.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "lissome/program.h"
#include "tests/expect_error.h"

namespace lissome {
namespace {

// Text that is printed exactly as it is written here.
void check_round_trip(const std::string& text) {
  const Program program = parse_program(text);
  CHECK(print_program(program) == text);
  CHECK(same_program(parse_program(print_program(program)), program));
}

std::string refuse_text(const std::string& text) {
  try {
    parse_program(text);
  } catch (const Error& error) {
    CHECK((error.kind() == ErrorKind::invalid_input || error.kind() == ErrorKind::unsupported));
    return error.message();
  }
  return "accepted";
}

TEST_CASE("a plain program reads and prints the same") {
  check_round_trip(
      "dim batch in 1..64\n"
      "input %x: f32[batch, 3]\n"
      "parameter @fc.weight: f32[64, 3]\n"
      "parameter @fc.bias: f32[64]\n"
      "%0: f32[batch, 64] = aten::linear(%x, @fc.weight, @fc.bias)  # net.py:8 in fc (Linear): \"x = self.fc(x)\"\n"
      "%1: f32[batch, 64] = aten::relu(%0)\n"
      "return %1\n");
}

TEST_CASE("every statement reads and prints the same") {
  check_round_trip(
      "dim batch in 1..64\n"
      "dim sequence in 2..\n"
      "dim any\n"
      "training\n"
      "call inputs '[{\"name\": \"x\"}]'\n"
      "call outputs \"it's {}\"\n"
      "input %x: f32[batch, 2*sequence + 1, Max(1, any)] as options.x\n"
      "input %n: int\n"
      "input %length: int[2*batch]\n"
      "input %flag: bool\n"
      "input %y: f32[...] as \"odd name\"\n"
      "input %z\n"
      "parameter @w: f32[4, 3]\n"
      "parameter @w2: f32[4, 3] tied @w\n"
      "buffer @part: f32[3] tied @w offset 6\n"
      "buffer @last: f32[4, 3, 2, 2] strides [12, 1, 6, 3]\n"
      "constant @c: c64[]\n"
      "constant @\"odd/name\": bool[2]\n"
      "constant @s: f32[4, 4] sparse_coo\n"
      "%a: f32[...], %b: i64[...] = aten::max.dim(%x, 1)\n"
      "_, %\"b c\" = aten::max.dim(%x, 1, keepdim=true)\n"
      "@part <- %a\n"
      "%x <- %a\n"
      "return %a, %b as indices, 3, none, [%a, @c]\n");
}

TEST_CASE("every literal reads and prints the same") {
  check_round_trip(
      "input %x: f32[2]\n"
      "%0 = lissome::cond(%x, none, true, false, 0, -9223372036854775808, 9223372036854775807, 1.0, -0.0, 1e-05, "
      "1e+300, "
      "0.1, 5e-324, inf, -inf, nan, complex(1.0, -inf), complex(nan, -0.0))\n"
      "%1 = lissome::cond(%x, \"\", \"a\\nb\\t\\\\\", 'say \"hi\"', \"both \\\" and '\", \"\\x00\\x1f\", \"grün\", [], "
      "[1, [2.5, \"x\"], [none]])\n"
      "%2 = lissome::cond(%x, f32, bool, c128, u64, strided, sparse_csr, mkldnn, contiguous, preserve, channels_last, "
      "channels_last_3d, cpu, cuda:0, meta, device(\"privateuse1:0\"))\n"
      "return %0, %1, %2\n");
}

TEST_CASE("literals keep their type and bits") {
  Program program;
  const ValueId x = program.add_input("x", {});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const ArgumentList literals = {1,
                                 1.0,
                                 true,
                                 "1",
                                 Argument(),
                                 -0.0,
                                 nan,
                                 0.1 + 0.2,
                                 std::numeric_limits<double>::denorm_min(),
                                 std::numeric_limits<double>::max(),
                                 std::complex<double>(-0.0, nan),
                                 Dtype::bf16,
                                 Layout::strided,
                                 MemoryFormat::preserve,
                                 Device{"cuda:1"},
                                 Device{"odd device"},
                                 std::string("\0\n\"\\'\x7f\xc3\xa9", 8),
                                 ArgumentList{1, ArgumentList{}, x}};
  ArgumentList arguments = {x};
  arguments.insert(arguments.end(), literals.begin(), literals.end());
  program.add_node(Op::control(Control::cond), arguments, {{}});
  const Program again = parse_program(print_program(program));
  CHECK(same_program(again, program));
  CHECK(again.nodes.at(0).arguments.size() == arguments.size());
  CHECK(std::signbit(*again.nodes[0].arguments.at(6).get<double>()));
  CHECK(std::isnan(*again.nodes[0].arguments.at(7).get<double>()));
  CHECK(*again.nodes[0].arguments.at(8).get<double>() == 0.1 + 0.2);
}

TEST_CASE("child programs nest") {
  check_round_trip(
      "input %p: bool[]\n"
      "input %x: f32[2]\n"
      "%0: f32[2] = lissome::cond(%p, [%x]) {\n"
      "  input %a: f32[2]\n"
      "  %b: f32[2] = lissome::region(\"grad=0\", %a) {\n"
      "    input %c: f32[2]\n"
      "    return %c\n"
      "  }  # a.py:3\n"
      "  return %b\n"
      "} {\n"
      "  input %a: f32[2]\n"
      "  constant @k: f32[2]\n"
      "  %0: f32[2] = aten::mul.Tensor(%a, @k)\n"
      "  return %0\n"
      "}\n"
      "return %0\n");
}

TEST_CASE("origins of any shape come back") {
  const std::vector<Origin> origins = {{"encoder.py:88", "x = self.fc(x)  # why", "encoder.layer.0", "BertLayer"},
                                       {"a.py:1", "", "", ""},
                                       {"", "code 'and' \"more\"", "", ""},
                                       {"", "", "m", ""},
                                       {"", "", "", "T"},
                                       {"C:\\my files\\a.py:3", "", "odd module(1)", "odd)type"},
                                       {"no line", "\ttab", "in", ":"},
                                       {"a.py:3", "c", "", ""}};
  for (const Origin& origin : origins) {
    Program program;
    const ValueId x = program.add_input("x", {});
    program.add_node(Op::find("aten::relu"), {x}, {{}}, std::make_shared<const Origin>(origin));
    const std::string text = print_program(program);
    CAPTURE(text);
    const Program again = parse_program(text);
    REQUIRE(again.nodes.at(0).origin != nullptr);
    CHECK(again.nodes[0].origin->source == origin.source);
    CHECK(again.nodes[0].origin->code == origin.code);
    CHECK(again.nodes[0].origin->module == origin.module);
    CHECK(again.nodes[0].origin->module_type == origin.module_type);
  }
  const Program commented =
      parse_program("input %x\n%1 = aten::relu(%x)  # it's the only reader\n# and a line\nreturn %1");
  CHECK(commented.nodes.at(0).origin == nullptr);
}

TEST_CASE("defaults are left out and come back") {
  const Program program = parse_program(
      "input %x: f32[1, 3, 8, 8]\n"
      "parameter @w: f32[4, 3, 3, 3]\n"
      "%0 = aten::conv2d(%x, @w, none, [1, 1], [1, 1])\n"
      "return %0");
  const Node& conv = program.nodes.at(0);
  CHECK(conv.arguments.size() == conv.op.schema().arguments().size());
  CHECK(conv.argument("groups") == Argument(1));
  CHECK(print_node(program, conv) == "%0 = aten::conv2d(%x, @w, padding=[1, 1])");
}

TEST_CASE("the short form of tests") {
  const Program program = parse_program(
      "%2 = aten::linear(%x: f32[N, 8], @w: f32[4, 8], @b: f32[4]) ; %3 = aten::relu(%2)\n"
      "%4 = aten::add(%2, %3)\n"
      "%5 = aten::sum(%4, [1])  # a free comment");
  CHECK(print_program(program) ==
        "dim N\n"
        "input %x: f32[N, 8]\n"
        "parameter @w: f32[4, 8]\n"
        "parameter @b: f32[4]\n"
        "%2 = aten::linear(%x, @w, @b)\n"
        "%3 = aten::relu(%2)\n"
        "%4 = aten::add.Tensor(%2, %3)\n"
        "%5 = aten::sum.dim_IntList(%4, [1])\n"
        "return %5\n");
  CHECK(parse_program("%1 = aten::add(%x: f32[2], 1)").nodes.at(0).op.is("aten::add.Scalar"));
  CHECK(parse_program("%1 = aten::transpose(%x: f32[2, 3], 0, 1)").nodes.at(0).op.is("aten::transpose.int"));
  CHECK(parse_program("%1 = aten::mul(%x, %y: f32[2])\ninput %x: f32[2]\n").outputs.size() == 1);
}

TEST_CASE("weights take the given tensors, tied ones share storage") {
  const at::Tensor given = at::arange(12, at::kFloat).reshape({4, 3});
  const Program program = parse_program(
      "parameter @w: f32[4, 3]\nparameter @a: f32[2, 2]\nparameter @b: f32[2] tied @a offset 2\nreturn @w, @a, @b",
      {{"w", given}});
  CHECK(program.weights.at(0).tensor.is_same(given));
  CHECK(program.weights.at(1).tensor.storage().data() == program.weights.at(2).tensor.storage().data());
  CHECK(program.weights.at(2).tensor.storage_offset() == 2);
  CHECK(mentions(refuse_text("parameter @w: f32[4, 3] strides [-1, 1]\nreturn"), "strides"));
  CHECK_THROWS_AS(parse_program("parameter @w: f64[4, 3]\nreturn", {{"w", given}}), Error);
  CHECK_THROWS_AS(parse_program("parameter @w: f32[3, 4]\nreturn", {{"w", given}}), Error);
}

TEST_CASE("weights may be filled with numbers") {
  const Program program =
      parse_program("constant @a: f32[2, 2] = 0.5\nconstant @b: i64[3] = [1, -2, 3]\nreturn @a, @b");
  CHECK(at::equal(program.weights.at(0).tensor, at::ones({2, 2}).mul(0.5)));
  CHECK(program.weights.at(1).tensor[1].item<int64_t>() == -2);
  CHECK(mentions(refuse_text("constant @b: i64[3] = [1, 2]\nreturn"), "2 numbers for 3 elements"));
  CHECK(mentions(refuse_text("constant @b: i64[3] = none\nreturn"), "filled with a number"));
}

TEST_CASE("weights and values may have one name") {
  Program program;
  program.add_input("x", {});
  const ValueId weight = program.add_weight("x", at::ones({2}), WeightRole::buffer);
  program.add_node(Op::find("aten::relu"), {weight}, {{}});
  program.value(program.nodes[0].result()).name = "x_2";
  program.outputs.push_back({program.nodes[0].result(), "x"});
  CHECK(same_program(parse_program(print_program(program)), program));
}

TEST_CASE("text that does not fit is refused with its place") {
  CHECK(mentions(refuse_text("input %x: f32[2]\n%1 = aten::relu(%y)"),
                 "line 2, column 17: %y is used before it is defined"));
  CHECK(mentions(refuse_text("%1 = aten::relu(%x: f32[2])\n%1 = aten::relu(%x)"), "%1 is defined twice"));
  CHECK(mentions(refuse_text("input %x\n%1 = aten::nothing_like_it(%x)"), "line 2"));
  CHECK(mentions(refuse_text("input %x\n%1 = aten::relu(%x, 1)"), "has no argument 2; it takes (self)"));
  CHECK(mentions(refuse_text("input %x\n%1 = aten::relu()"), "lacks its argument 'self'"));
  CHECK(mentions(refuse_text("input %x\n%1 = aten::relu(self=%x, self=%x)"), "given twice"));
  CHECK(mentions(refuse_text("input %x\n%1 = aten::softmax.int(%x, dimension=1)"), "no argument 'dimension'"));
  CHECK(mentions(refuse_text("input %x\n%1, %2 = aten::relu(%x)"), "has 1 results"));
  CHECK(mentions(refuse_text("input %x: f31[2]"), "no dtype"));
  CHECK(mentions(refuse_text("input %x: f32[2"), "without ']'"));
  CHECK(mentions(refuse_text("input %x: f32[2**]"), "line 1"));
  CHECK(mentions(refuse_text("input %x: tensor"), "no type"));
  CHECK(mentions(refuse_text("parameter @w: f32[N]\nreturn"), "no number"));
  CHECK(mentions(refuse_text("parameter @w: f32[9000000000000000000, 9]\nreturn"), "overflow"));
  CHECK(mentions(refuse_text("parameter @w: f32[1000000000000]\nreturn"), "larger than"));
  CHECK(mentions(refuse_text("parameter @w: f32[2]\nparameter @w: f32[2]\nreturn"), "declared twice"));
  CHECK(mentions(refuse_text("parameter @w: f32[2] tied @v\nreturn"), "@v is not declared"));
  CHECK(mentions(refuse_text("return @w"), "@w is not declared"));
  CHECK(mentions(refuse_text("return some"), "no literal"));
  CHECK(mentions(refuse_text("return 'open"), "closing quote"));
  CHECK(mentions(refuse_text("return \"\\q\""), "escape"));
  CHECK(mentions(refuse_text("return 9223372036854775808"), "64 bits"));
  CHECK(mentions(refuse_text("return (1)"), "line 1, column 8"));
  CHECK(mentions(refuse_text("dim n in 5..2"), "empty range"));
  CHECK(mentions(refuse_text("dim n in -1..2"), "smallest size of 'n' is negative"));
  CHECK(mentions(refuse_text("dim n\ndim n"), "declared twice"));
  CHECK(mentions(refuse_text("}"), "'}' without '{'"));
  CHECK(mentions(refuse_text("what is this"), "line 1"));
  CHECK(mentions(refuse_text("%1 = lissome::cond(%p: bool[]) { return %p }"), "child program"));
  CHECK(mentions(refuse_text("%1 = lissome::cond(1) { return 1"), "'}'"));
  CHECK(mentions(refuse_text("return " + std::string(1000, '[')), "nested deeper"));
  std::string programs;
  for (int i = 0; i < 100; ++i) programs += "lissome::cond(1) {\n";
  CHECK(mentions(refuse_text(programs), "nested deeper"));
}

TEST_CASE("same_program sees every difference") {
  const std::string base =
      "dim n in 1..4\ninput %x: f32[n, 2]\nparameter @w: f32[2, 2]\n%0: f32[n, 2] = aten::matmul(%x, @w)\n"
      "@w <- %0\nreturn %0 as y";
  const Program program = parse_program(base);
  CHECK(same_program(program, parse_program(base)));
  const std::vector<std::pair<std::string, std::string>> changes = {{"1..4", "1..5"},
                                                                    {"f32[n, 2]\np", "f32[n, 3]\np"},
                                                                    {"%x: f32[n", "%x: f64[n"},
                                                                    {"parameter", "buffer"},
                                                                    {"@w: f32[2, 2]", "@w: f32[2, 3]"},
                                                                    {"matmul(%x, @w)", "matmul(@w, %x)"},
                                                                    {"aten::matmul", "aten::mm"},
                                                                    {"@w <- %0\n", ""},
                                                                    {"as y", "as z"},
                                                                    {"return %0 as y", "return %0 as y, 1"},
                                                                    {"return %0", "return @w"},
                                                                    {"dim", "training\ndim"}};
  for (const auto& [from, to] : changes) {
    std::string changed = base;
    CAPTURE(from);
    const size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    changed.replace(at, from.size(), to);
    CHECK_FALSE(same_program(program, parse_program(changed)));
  }
}

}  // namespace
}  // namespace lissome

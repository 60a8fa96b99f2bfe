// Facts: the effects table against what ops really do, bound values, inferred types, and what verify() refuses.
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include "lissome/program.h"
#include "tests/expect_error.h"

namespace lissome {
namespace {

const at::TensorOptions kBoundType = at::TensorOptions().dtype(at::kFloat);

Effects effects_of(const std::string& text) {
  const Program program = parse_program(text);
  return find_effects(program, program.nodes.back());
}

std::string verdict(const Program& program, Stage stage) {
  try {
    verify_program(program, stage);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::internal);
    return error.message();
  }
  return "kept";
}

}  // namespace

TEST_CASE("effects come from annotations, tags and the lists of what both leave out") {
  const std::string x = "input %x: f32[4, 3]\n";
  CHECK_FALSE(effects_of(x + "%0: f32[4, 3] = aten::relu(%x)\nreturn %0\n").may_alias);
  CHECK(effects_of(x + "%0: f32[12] = aten::view(%x, [12])\nreturn %0\n").may_alias);
  CHECK(effects_of(x + "%0: f32[4, 3] = aten::relu_(%x)\nreturn %0\n").barrier());
  CHECK(effects_of(x + "%0: f32[4, 3] = aten::dropout(%x, 0.5, false)\nreturn %0\n").may_alias);
  CHECK_FALSE(effects_of(x + "%0: f32[4, 3] = aten::dropout(%x, 0.5, false)\nreturn %0\n").random);
  CHECK(effects_of(x + "%0: f32[4, 3] = aten::dropout(%x, 0.5, true)\nreturn %0\n").random);
  CHECK(effects_of(x + "%0: f32[3, 4] = aten::einsum(\"ij->ji\", [%x])\nreturn %0\n").may_alias);
  CHECK(effects_of(x + "%0: f32[4, 3] = aten::rand_like(%x)\nreturn %0\n").random);
  CHECK(effects_of(x + "%0: i64[...] = aten::nonzero(%x)\nreturn %0\n").shape_from_data);
  CHECK(effects_of("input %x: f32[]\n%0: float = aten::item(%x)\nreturn %0\n").shape_from_data);
  CHECK(effects_of("input %b: bool[]\naten::_assert_async(%b)\nreturn %b\n").check);
}

TEST_CASE("effects look at the arguments") {
  const std::string batch_norm =
      "input %x: f32[4, 3]\nbuffer @m: f32[3]\nbuffer @v: f32[3]\n%0: f32[4, 3] = aten::batch_norm(%x, none, none, ";
  CHECK((effects_of(batch_norm + "@m, @v, true, 0.1, 1e-05, false)\nreturn %0\n").writes == std::vector<int>{3, 4}));
  CHECK(effects_of(batch_norm + "@m, @v, false, 0.1, 1e-05, false)\nreturn %0\n").writes.empty());
  CHECK(effects_of(batch_norm + "none, none, true, 0.1, 1e-05, false)\nreturn %0\n").writes.empty());
  const std::string index =
      "input %x: f32[4]\ninput %i: i64[2]\ninput %m: bool[4]\n%0: f32[...] = aten::index.Tensor(%x, ";
  CHECK_FALSE(effects_of(index + "[%i])\nreturn %0\n").shape_from_data);
  CHECK(effects_of(index + "[%m])\nreturn %0\n").shape_from_data);
  const std::string attention =
      "input %q: f32[1, 1, 2, 4]\n%0: f32[1, 1, 2, 4] = "
      "aten::scaled_dot_product_attention(%q, %q, %q, none, ";
  CHECK_FALSE(effects_of(attention + "0.0)\nreturn %0\n").random);
  CHECK(effects_of(attention + "0.1)\nreturn %0\n").random);
}

TEST_CASE("control nodes do what their bodies do") {
  const Effects effects = effects_of(
      "input %p: bool[]\ninput %x: f32[2]\ninput %y: f32[2]\n%0: f32[2] = lissome::cond(%p, %x, %y) {\n"
      "  input %a: f32[2]\n  input %b: f32[2]\n  %0: f32[2] = aten::add_.Tensor(%b, %a)\n"
      "  %1: f32[2] = aten::rand_like(%a)\n  return %1\n} {\n"
      "  input %a: f32[2]\n  input %b: f32[2]\n  %0: f32[2] = aten::view(%a, [2])\n  return %0\n}\nreturn %0\n");
  CHECK((effects.writes == std::vector<int>{2}));
  CHECK((effects.aliases == std::vector<int>{1}));
  CHECK(effects.random);
}

TEST_CASE("bind sees sizes, strides, storages and numbers") {
  const Program program = parse_program(
      "dim n in 1..64\ninput %x: f32[n, 3]\n%t: f32[3, n] = aten::t(%x)\n%y: f32[3, n] = aten::exp(%t)\n"
      "%n: int = aten::sym_size.int(%x, 0)\nreturn %y, %n\n");
  const Bound bound = bind_program(program, {at::zeros({5, 3}, kBoundType)});
  const auto at = [&](std::string_view name) { return bound.values[static_cast<size_t>(*program.find_value(name))]; };
  CHECK(bound.dimensions.at("n") == 5);
  CHECK((at("t").sizes == Sizes{3, 5}));
  CHECK((at("t").strides == Sizes{1, 3}));
  CHECK(at("t").storage == at("x").storage);
  CHECK(at("y").storage != at("x").storage);
  CHECK(std::get<int64_t>(at("n").number.value()) == 5);
}

TEST_CASE("bind leaves inputs and weights as they are") {
  const Program program = parse_program(
      "input %x: f32[4, 3]\nbuffer @m: f32[3]\nbuffer @v: f32[3]\n"
      "%0: f32[4, 3] = aten::batch_norm(%x, none, none, @m, @v, true, 0.1, 1e-05, false)\n"
      "%1: f32[4, 3] = aten::relu_(%x)\nreturn %0, %1\n");
  const at::Tensor x = at::ones({4, 3}, kBoundType).neg();
  bind_program(program, {x});
  CHECK(x.lt(0).all().item<bool>());
  CHECK(program.weights[0].tensor.eq(0).all().item<bool>());
}

TEST_CASE("bind refuses what the program says wrongly of a value") {
  const Program sizes = parse_program("input %x: f32[4]\n%0: f32[5] = aten::neg(%x)\nreturn %0\n");
  CHECK_THROWS_AS(bind_program(sizes, {at::zeros({4}, kBoundType)}), Error);
  const Program dtype = parse_program("input %x: f32[4]\n%0: f64[4] = aten::neg(%x)\nreturn %0\n");
  CHECK_THROWS_AS(bind_program(dtype, {at::zeros({4}, kBoundType)}), Error);
}

TEST_CASE("open types are filled, sizes in named dimensions where they follow them") {
  Program program = parse_program(
      "dim batch in 1..64\ndim length in 2..64\ninput %x: f32[batch, length, 4]\n"
      "%a = aten::transpose.int(%x, 1, 2)\n%b: f32[...] = aten::flatten.using_ints(%x, 0, 1)\n"
      "%c: f32[...] = aten::cat([%x, %x], 1)\n%d: f32[...] = aten::sum.dim_IntList(%x, [0, 1])\nreturn %a, %b, %c, "
      "%d\n");
  infer_types(program, {at::zeros({4, 4, 4}, kBoundType)});
  const auto type = [&](std::string_view name) { return program.value(*program.find_value(name)).type; };
  const Dimension batch = Dimension::named("batch"), length = Dimension::named("length");
  CHECK(type("a").kind == ValueKind::tensor);
  CHECK((type("a").sizes == std::vector<Dimension>{batch, 4, length}));
  CHECK((type("b").sizes == std::vector<Dimension>{Dimension::parse("batch*length"), 4}));
  CHECK((type("c").sizes == std::vector<Dimension>{batch, Dimension::parse("2*length"), 4}));
  CHECK((type("d").sizes == std::vector<Dimension>{4}));
}

TEST_CASE("sizes that grow unevenly are no sums of dimensions") {
  Program program = parse_program(
      "dim n in 1..64\ninput %x: f32[n, 4]\n%t: f32[...] = aten::t(%x)\n%s: f32[...] = aten::matmul(%x, %t)\n"
      "%square: f32[...] = aten::flatten.using_ints(%s)\n%w: f32[...] = aten::cat([%s, %x], 1)\n"
      "%other: f32[...] = aten::flatten.using_ints(%w)\n%half: f32[...] = aten::slice.Tensor(%x, 0, 0, none, 2)\n"
      "return %square, %other, %half\n");
  infer_types(program, {at::zeros({3, 4}, kBoundType)});
  const auto type = [&](std::string_view name) { return program.value(*program.find_value(name)).type; };
  CHECK((type("square").sizes == std::vector<Dimension>{Dimension::parse("n*n")}));
  CHECK((type("half").sizes == std::vector<Dimension>{Dimension::parse("(n + 1)//2"), 4}));
  CHECK_FALSE(type("other").sized);  // n*n + 4*n: left open
}

TEST_CASE("verify keeps good programs and names what is wrong with bad ones") {
  const Program good = parse_program(
      "input %x: f32[2]\nbuffer @b: f32[2]\n%0: f32[2] = aten::add.Tensor(%x, @b)\n@b <- %0\nreturn %0\n");
  CHECK(verdict(good, Stage::ready) == "kept");
  Program bad = good;
  std::swap(bad.values[0].name, bad.values[1].name);
  bad.values[1].name = bad.values[0].name;
  CHECK(mentions(verdict(bad, Stage::imported), "two values are named"));
  bad = good;
  bad.nodes.push_back(bad.nodes[0]);
  CHECK(mentions(verdict(bad, Stage::imported), "makes %0 a second time"));
  bad = good;
  bad.nodes[0].arguments[0] = bad.nodes[0].result();
  CHECK(mentions(verdict(bad, Stage::imported), "reads %0 before it is made"));
  bad = good;
  bad.nodes[0].arguments.pop_back();
  CHECK(mentions(verdict(bad, Stage::imported), "has 2 arguments, its schema 3"));
  bad = good;
  bad.nodes[0].arguments[2] = "text";
  CHECK(mentions(verdict(bad, Stage::imported), "argument 'alpha' cannot be taken as Scalar"));
  bad = good;
  bad.writes[0].target = bad.nodes[0].result();
  CHECK(mentions(verdict(bad, Stage::imported), "neither a weight nor an input"));
  bad = good;
  bad.outputs[0].value = ValueId{99};
  CHECK(mentions(verdict(bad, Stage::imported), "refers to value 99"));
  bad = good;
  bad.weights[0].tensor = at::zeros({3}, kBoundType);
  CHECK(mentions(verdict(bad, Stage::imported), "weight 'b' has sizes [3]"));
}

TEST_CASE("later stages are stricter") {
  const Program dead = parse_program("input %x: f32[2]\n%0: f32[2] = aten::neg(%x)\nreturn %x\n");
  CHECK(verdict(dead, Stage::imported) == "kept");
  CHECK(mentions(verdict(dead, Stage::optimized), "is dead"));
  const Program check = parse_program("input %b: bool[]\naten::_assert_async(%b)\nreturn %b\n");
  CHECK(verdict(check, Stage::ready) == "kept");
  const Program region = parse_program(
      "input %x: f32[2]\n%0: f32[2] = lissome::region(\"autocast=cpu,bf16,1\", %x) {\n  input %x: f32[2]\n"
      "  %0: f32[2] = aten::neg(%x)\n  return %0\n}\nreturn %0\n");
  CHECK(verdict(region, Stage::compressed) == "kept");
  CHECK(mentions(verdict(region, Stage::ready), "autocast"));
  const Program wrong = parse_program(
      "input %x: f32[2, 4]\nconstant @w: i8[3, 4]\nconstant @s: f32[3]\n"
      "%0: f32[2, 3] = lissome::linear_int8(%x, 0.1, 0, @w, @s, none, \"none\", none)\nreturn %0\n");
  CHECK(verdict(wrong, Stage::optimized) == "kept");
  CHECK(mentions(verdict(wrong, Stage::compressed), "'x' is f32, quantized data there are u8"));
  const Program open = parse_program(
      "input %x: f32[2]\n%0: f32[2] = lissome::region(\"grad=0\", %x) {\n  input %x: f32[2]\n  input %y: f32[2]\n"
      "  return %x\n}\nreturn %0\n");
  CHECK(mentions(verdict(open, Stage::imported), "takes 2 inputs, the node gives 1"));
}

}  // namespace lissome

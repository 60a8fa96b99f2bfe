// The Rewriter: its facts stay true through any sequence of changes, and finish() leaves what the changes said.
#include "lissome/pass/rewrite.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/ones.h>
#include <doctest/doctest.h>

#include <random>

#include "lissome/pass.h"

namespace lissome {
namespace {

std::string body_of(const Program& program) {
  return print_program(program, {.origins = false, .declarations = false});
}

ValueId find(const Program& program, std::string_view name) { return program.find_value(name).value(); }

TEST_CASE("a replaced node keeps its results and lets go of what it read") {
  Program program = parse_program(
      "%1 = aten::neg(%x: f32[4])\n%2 = aten::exp(%x)\n%3 = aten::add.Tensor(%1, %2)\n%4 = aten::relu(%3)\nreturn "
      "%4\n");
  Rewriter rewriter(program);
  CHECK(rewriter.has_one_use(find(program, "1")));
  CHECK(rewriter.only_reader(find(program, "3")) == 3);
  rewriter.replace_node(2, Op::find("aten::mul.Tensor"), {find(program, "2"), find(program, "2")});
  CHECK(rewriter.use_count(find(program, "1")) == 0);
  CHECK(rewriter.use_count(find(program, "2")) == 2);
  CHECK(rewriter.only_reader(find(program, "2")) == -1);  // one node, but two reads
  CHECK((rewriter.readers(find(program, "2")) == std::vector<int>{2}));
  CHECK(rewriter.use_count(find(program, "x")) == 1);  // the negation is dead
  CHECK(rewriter.is_dead(0));
  CHECK(rewriter.finish() == 1);
  CHECK(body_of(program) == body_of(parse_program("%2 = aten::exp(%x: f32[4])\n%3 = aten::mul.Tensor(%2, %2)\n"
                                                  "%4 = aten::relu(%3)\nreturn %4\n")));
  verify_program(program, Stage::optimized);
}

TEST_CASE("replaced values are looked through, in chains, lists, outputs and writes") {
  Program program = parse_program(
      "%1 = aten::neg(%x: f32[4])\n%2 = aten::alias(%1)\n%3 = aten::alias(%2)\n%4 = aten::cat([%3, %2])\n"
      "@state: f32[4] <- %3\nreturn %4, %3\n");
  Rewriter rewriter(program);
  const ValueId first = find(program, "1"), second = find(program, "2"), third = find(program, "3");
  rewriter.replace_value(third, second);
  CHECK(rewriter.use_count(second) == 4);
  rewriter.replace_value(second, first);
  CHECK((rewriter.resolve(Argument(third)) == Argument(first)));
  CHECK(rewriter.producer(third) == &rewriter.node(0));
  CHECK(rewriter.producer(Argument(third), "aten::neg") != nullptr);
  CHECK(rewriter.producer(Argument(third), "aten::alias") == nullptr);
  CHECK(rewriter.use_count(first) == 4);
  CHECK(rewriter.use_count(third) == 4);  // of what it stands for
  CHECK((rewriter.readers(second) == std::vector<int>{3}));
  CHECK(rewriter.finish() == 2);
  CHECK(program.nodes.size() == 2);
  CHECK((program.nodes[1].arguments[0] == Argument(ArgumentList{first, first})));
  CHECK(program.writes[0].value == first);
  CHECK((program.outputs[1].value == Argument(first)));
}

TEST_CASE("new nodes stand before the place that they were made for, in the order of their making") {
  Program program = parse_program("%1 = aten::neg(%x: f32[4, 3])\n%2 = aten::relu(%1)\nreturn %2\n");
  Rewriter rewriter(program);
  const ValueType type = program.value(find(program, "1")).type;
  const ValueId exponential = rewriter.insert_before(1, Op::find("aten::exp"), {find(program, "1")}, {type}, nullptr);
  const ValueId greatest =
      rewriter.insert_before(1, Op::find("aten::max.dim"), {exponential, 1}, {type, type}, nullptr);
  CHECK(rewriter.inserted(greatest).results.size() == 2);
  CHECK(rewriter.producer(Argument(greatest), "aten::max.dim") != nullptr);
  rewriter.replace_node(1, Op::find("aten::sigmoid"), {greatest});
  rewriter.finish();
  REQUIRE(program.nodes.size() == 4);
  CHECK(program.nodes[1].is("aten::exp"));
  CHECK(program.nodes[2].is("aten::max.dim"));
  CHECK((program.nodes[2].arguments.back() == Argument(false)));  // defaults are written out
  CHECK(program.nodes[3].is("aten::sigmoid"));
}

TEST_CASE("a node that lost its last reader and found another lives") {
  Program program = parse_program(
      "%1 = aten::neg(%x: f32[4])\n%2 = aten::exp(%1)\n%3 = aten::relu(%2)\n%4 = aten::relu(%x)\nreturn %3, %4\n");
  Rewriter rewriter(program);
  rewriter.replace_node(2, Op::find("aten::relu"), {find(program, "x")});
  CHECK(rewriter.is_dead(0));
  CHECK(rewriter.is_dead(1));
  rewriter.replace_node(3, Op::find("aten::relu"), {find(program, "2")});
  CHECK_FALSE(rewriter.is_dead(0));
  CHECK_FALSE(rewriter.is_dead(1));
  rewriter.finish();
  CHECK(program.nodes.size() == 4);
}

TEST_CASE("what has an effect stays, whoever reads it") {
  Program program = parse_program(
      "%1 = aten::rand_like(%x: f32[4])\n%2 = aten::neg(%x)\naten::_assert_async(%ok: bool[])\n%3 = "
      "aten::relu(%x)\nreturn %3\n");
  CHECK(remove_dead_nodes(program) == 1);  // the negation alone
  CHECK(program.nodes.size() == 3);
  Rewriter rewriter(program);
  rewriter.remove_node(1);
  CHECK(rewriter.use_count(find(program, "ok")) == 0);
  CHECK(rewriter.finish() == 1);
  CHECK(program.nodes.size() == 2);
}

TEST_CASE("results and operands of a condition that nobody needs go") {
  const char* const text =
      "%1 = aten::neg(%x: f32[4])\n%2, %3 = lissome::cond(%p: bool[], %1, %x) {\n  input %a: f32[4]\n  input %b: "
      "f32[4]\n"
      "  %0: f32[4] = aten::exp(%a)\n  %1: f32[4] = aten::relu(%b)\n  return %0, %1\n} {\n  input %a: f32[4]\n"
      "  input %b: f32[4]\n  return %a, %b\n}\nreturn %3\n";
  Program program = parse_program(text);
  const Program original = program;
  remove_dead_nodes(program);
  REQUIRE(program.nodes.size() == 1);
  CHECK(program.nodes[0].results.size() == 1);
  CHECK(program.nodes[0].arguments.size() == 2);
  CHECK(program.nodes[0].bodies[0]->nodes.size() == 1);
  CHECK(original.nodes[1].bodies[0]->nodes.size() == 2);  // bodies are shared between programs
  const at::Tensor x = at::ones({4}).neg();
  for (const bool condition : {false, true}) {
    const std::vector<c10::IValue> inputs = {x, at::ones({}).eq(condition ? 1 : 0)};
    CHECK(interpret(program, inputs)[0].toTensor().equal(interpret(original, inputs)[0].toTensor()));
  }
}

TEST_CASE("weights that are written stay, those that nobody mentions go") {
  Program program =
      parse_program("parameter @unread: f32[2]\n%1 = aten::neg(%x: f32[4])\n@state: f32[4] <- %1\nreturn %1\n");
  CHECK(remove_unread_weights(program) == 1);
  CHECK(program.find_weight("state") != nullptr);
}

TEST_CASE("a weight is constant unless something writes to its memory") {
  Program program = parse_program(
      "buffer @a: f32[4]\nbuffer @b: f32[4] tied @a\nparameter @c: f32[1] = 2.5\n"
      "%1 = aten::add.Tensor(%x: f32[4], @c)\n@a <- %1\nreturn %1\n");
  const Rewriter rewriter(program);
  CHECK_FALSE(rewriter.is_constant(find(program, "a")));
  CHECK_FALSE(rewriter.is_constant(find(program, "b")));
  CHECK(rewriter.is_constant(find(program, "c")));
  CHECK(constant_number(rewriter, find(program, "c")) == 2.5);
  CHECK(constant_number(rewriter, Argument(3)) == 3.0);
  CHECK_FALSE(constant_number(rewriter, find(program, "x")));
  const ValueId first = add_constant(program, "made", at::ones({2})),
                second = add_constant(program, "made", at::ones({2}));
  CHECK(name_of_weight(program, first) == "made");
  CHECK(name_of_weight(program, second) == "made_1");
}

TEST_CASE("around what a node writes in place nothing is replaced, moved or taken for constant") {
  Program program = parse_program(
      "%1 = aten::neg(@state: f32[4])\n%2: f32[4] = aten::add_.Tensor(@state, %x: f32[4])\n%3 = aten::neg(@state)\n"
      "%4 = aten::clone(@state)\n%5 = aten::relu(%1)\n%6 = aten::exp(%5)\nreturn %3, %4, %6\n");
  Rewriter rewriter(program);
  CHECK_FALSE(rewriter.is_constant(find(program, "state")));
  rewriter.replace_value(find(program, "3"), find(program, "1"));
  rewriter.replace_value(find(program, "4"), find(program, "state"));
  rewriter.replace_node(4, Op::find("aten::exp"), {find(program, "state")});
  const ValueId moved =
      rewriter.insert_before(5, Op::find("aten::neg"), {find(program, "2")}, {tensor_type(Dtype::f32, {4})}, nullptr);
  rewriter.replace_node(5, Op::find("aten::exp"), {moved});
  CHECK(rewriter.finish() == 0);
  Program rewritable = program;
  Rewriter other(rewritable);
  other.replace_value(find(program, "5"), find(program, "1"));  // neither shares storage with the state
  CHECK(other.finish() == 1);
}

TEST_CASE("sizes as literals and together") {
  const Dimension n = Dimension::named("n"), m = Dimension::named("m");
  CHECK((literal_sizes({n, 3}) == ArgumentList{-1, 3}));
  CHECK_FALSE(literal_sizes({n, m}));
  CHECK_FALSE(literal_sizes({n, 0}));  // -1 of nothing is open
  CHECK((broadcast_sizes({n, 1, 3}, {4, 1}) == std::vector<Dimension>{n, 4, 3}));
  CHECK((broadcast_sizes({}, {n}) == std::vector<Dimension>{n}));
  CHECK_FALSE(broadcast_sizes({n}, {m}));
}

// Reads of every value by nodes that something needs, outputs and writes, with replaced values looked through.
std::vector<int> count_reads(Rewriter& rewriter) {
  const Program& program = rewriter.program();
  std::vector<int> counts(program.values.size(), 0);
  std::vector<const Node*> pending;
  std::unordered_set<const Node*> seen;
  const auto read = [&](const Argument& argument) {
    for_each_value(rewriter.resolve(argument), [&](ValueId value) {
      ++counts[static_cast<size_t>(value)];
      const Node* node = rewriter.producer(value);
      if (node != nullptr && seen.insert(node).second) pending.push_back(node);
    });
  };
  for (const ProgramOutput& output : program.outputs) read(output.value);
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    for (const Argument& argument : node->arguments) read(argument);
  }
  return counts;
}

TEST_CASE("after any changes the counts of reads are those of a fresh look") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    Program program;
    std::vector<ValueId> values = {program.add_input("x", tensor_type(Dtype::f32, {4}))};
    const auto choose = [&](size_t limit) { return values[random() % limit]; };
    for (int i = 0; i < 12; ++i) {
      values.push_back(program
                           .add_node(Op::find("aten::add.Tensor"), {choose(values.size()), choose(values.size())},
                                     {tensor_type(Dtype::f32, {4})})
                           .result());
    }
    program.outputs = {{values[values.size() - 1], "output.0"}, {values[values.size() - 2], "output.1"}};
    remove_dead_nodes(program);
    values = {program.inputs[0].value};
    for (const Node& node : program.nodes) values.push_back(node.result());
    Rewriter rewriter(program);
    for (int change = 0; change < 8; ++change) {
      const int position = static_cast<int>(random() % static_cast<uint64_t>(rewriter.node_count()));
      const ValueId result = rewriter.node(position).result();
      // Values in front of the node; `values` is in their order.
      const auto limit = static_cast<size_t>(std::find(values.begin(), values.end(), result) - values.begin());
      const bool replaced = rewriter.resolve(Argument(result)) != Argument(result);
      if (rewriter.is_dead(position) || replaced) continue;
      const uint64_t kind = random() % 3;
      if (kind == 0) {
        rewriter.replace_value(result, choose(limit));
      } else if (kind == 1) {
        rewriter.replace_node(position, Op::find("aten::mul.Tensor"),
                              {rewriter.resolve(choose(limit)), rewriter.resolve(choose(limit))});
      } else {
        const ValueId made = rewriter.insert_before(position, Op::find("aten::sub.Tensor"),
                                                    {rewriter.resolve(choose(limit)), rewriter.resolve(choose(limit))},
                                                    {tensor_type(Dtype::f32, {4})}, nullptr);
        rewriter.replace_node(position, Op::find("aten::mul.Tensor"), {made, rewriter.resolve(choose(limit))});
      }
      const std::vector<int> counts = count_reads(rewriter);
      for (const ValueId value : values) {
        if (rewriter.resolve(Argument(value)) != Argument(value)) continue;
        REQUIRE(rewriter.use_count(value) == counts[static_cast<size_t>(value)]);
      }
    }
    rewriter.finish();
    verify_program(program, Stage::optimized);
  }
}

}  // namespace
}  // namespace lissome

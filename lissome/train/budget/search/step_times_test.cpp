// Times are compared by the nodes that two steps share.
#include "lissome/train/budget/search/step_times.h"

#include <doctest/doctest.h>

using namespace lissome;

TEST_CASE("the seconds of a node are those of its first run") {
  CHECK(list_first_runs({0, 1, 0, 2}, {5, 6, 7, 8}, 4) == std::vector<double>{5, 6, 8, 0});
}

TEST_CASE("nodes that only one program has do not count, nor do values that it computes by another op") {
  const Program whole = parse_program(R"(
    input %x: f32[4]
    %e: f32[4] = aten::exp(%x)
    %n: f32[4] = aten::neg(%e)
    %s: f32[] = aten::sum(%n)
    return %s
  )");
  Program rewritten = whole;
  rewritten.nodes[1].op = Op::find("aten::relu");
  rewritten.add_node(Op::find("aten::abs"), {Argument(*whole.find_value("e"))},
                     {whole.value(*whole.find_value("e")).type});
  // exp takes 2 of 1, sum 6 of 3; what relu, neg and abs take says nothing.
  CHECK(compare_shared_nodes(rewritten, {2, 100, 6, 100}, whole, {1, 7, 3}) == doctest::Approx(2));
  Program other = whole;
  for (Node& node : other.nodes) node.op = Op::find("aten::abs");
  CHECK(compare_shared_nodes(other, {1, 1, 1}, whole, {5, 5, 5}) == 1);
}

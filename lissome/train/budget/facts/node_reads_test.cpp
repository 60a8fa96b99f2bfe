// A plan made by hand: a node reads what its steps read, and a fused node what its readers need.
#include "lissome/train/budget/facts/node_reads.h"

#include <doctest/doctest.h>

using namespace lissome;

namespace {

struct FusedStep {
  Program program;
  Plan plan;
  std::vector<bool> joined;
  int e, n, s;  // values of the program
};

// exp has a step of its own; neg was fused into the step of sum, which takes `operands`.
FusedStep make_fused_step(std::vector<PlanValueId> operands) {
  FusedStep made{parse_program(R"(
    input %x: f32[4]
    %e: f32[4] = aten::exp(%x)
    %n: f32[4] = aten::neg(%e)
    %s: f32[] = aten::sum(%n)
    return %s
  )"),
                 {},
                 {},
                 0,
                 0,
                 0};
  made.e = static_cast<int>(*made.program.find_value("e"));
  made.n = static_cast<int>(*made.program.find_value("n"));
  made.s = static_cast<int>(*made.program.find_value("s"));
  made.joined.assign(made.program.values.size(), false);
  made.joined[static_cast<size_t>(made.n)] = true;
  Plan& plan = made.plan;
  plan.made_here = true;
  plan.values.resize(3);
  plan.values[0].program_value = static_cast<int>(*made.program.find_value("x"));
  plan.values[1].program_value = made.e;
  plan.values[2].program_value = made.s;
  plan.steps.resize(2);
  plan.steps[0].kernel = "exp";
  plan.steps[0].operands = {PlanValueId{0}};
  plan.steps[0].results = {PlanValueId{1}};
  plan.steps[0].origins.resize(1);
  plan.steps[0].origins[0].program_node = 0;
  plan.steps[1].kernel = "sum";
  plan.steps[1].operands = std::move(operands);
  plan.steps[1].results = {PlanValueId{2}};
  plan.steps[1].origins.resize(1);
  plan.steps[1].origins[0].program_node = 2;
  return made;
}

}  // namespace

TEST_CASE("the reader of a fused value reads what the fused node reads") {
  const FusedStep made = make_fused_step({PlanValueId{1}});
  const StepModel model = list_node_reads(LoweredStep({&made.program, &made.plan, 1, {}}), made.joined);
  REQUIRE(model.nodes.size() == 3);
  CHECK(model.nodes[0].reads.empty());  // inputs are no values of other nodes
  CHECK(model.nodes[1].reads == std::vector<int>{made.e});
  CHECK(model.nodes[2].reads == std::vector<int>{made.e, made.n});
  CHECK(model.nodes[2].results == std::vector<int>{made.s});
  CHECK(model.producer[static_cast<size_t>(made.n)] == 1);
}

TEST_CASE("what the step does not read is named only, by the fused node too") {
  const FusedStep made = make_fused_step({});
  const StepModel model = list_node_reads(LoweredStep({&made.program, &made.plan, 1, {}}), made.joined);
  CHECK(model.nodes[2].reads == std::vector<int>{made.n});
  CHECK(model.nodes[2].names == std::vector<int>{made.e});
  CHECK(model.nodes[1].reads.empty());
  CHECK(model.nodes[1].names == std::vector<int>{made.e});
}

// A plan made by hand beside its program: steps and values are connected by positions, whatever their names.
#include "lissome/train/budget/facts/lowered_step.h"

#include <doctest/doctest.h>

using namespace lissome;

namespace {

constexpr PlanValueId kX{0}, kCopy{1}, kExp{2}, kSum{3};

Program make_lowered_program() {
  return parse_program(R"(
    input %x: f32[4]
    %e: f32[4] = aten::exp(%x)
    %n: f32[4] = aten::neg(%e)
    %s: f32[] = aten::sum(%n)
    return %s
  )");
}

int number_of(const Program& program, const char* name) { return static_cast<int>(*program.find_value(name)); }

PlanStep add_planned_step(std::string kernel, std::vector<PlanValueId> operands, PlanValueId result,
                          std::vector<int> nodes) {
  PlanStep step;
  step.kernel = std::move(kernel);
  step.operands = std::move(operands);
  step.results = {result};
  for (const int node : nodes) {
    PlanOrigin origin;
    origin.program_node = node;
    step.origins.push_back(std::move(origin));
  }
  return step;
}

// exp reads a copy of x that only the plan has; neg and sum are one step of libtorch.
Plan make_lowered_plan(const Program& program) {
  Plan plan;
  plan.made_here = true;
  plan.values.resize(5);
  plan.value(kX).program_value = number_of(program, "x");
  plan.value(kX).storage = Storage::input;
  plan.value(kCopy).name = "n";  // the name of a value of the program, which it is not
  plan.value(kExp).program_value = number_of(program, "e");
  plan.value(kSum).program_value = number_of(program, "s");
  plan.steps = {add_planned_step("copy", {kX}, kCopy, {0}),
                add_planned_step("exp", {kCopy, PlanValueId::none}, kExp, {0}),
                add_planned_step(std::string(kReferenceStep), {kExp}, kSum, {1, 2})};
  return plan;
}

}  // namespace

TEST_CASE("steps are connected with their nodes, and values with those of the program, by position") {
  const Program program = make_lowered_program();
  const Plan plan = make_lowered_plan(program);
  const LoweredStep step({&program, &plan, 1, {}});
  CHECK(step.planned(*program.find_value("e")) == kExp);
  CHECK(step.planned(*program.find_value("n")) == PlanValueId::none);
  CHECK(step.original(kCopy) == ValueId::none);
  CHECK(step.original(kSum) == *program.find_value("s"));
  CHECK(step.maker(*program.find_value("e")) == &plan.steps[1]);
  CHECK(step.maker(*program.find_value("x")) == nullptr);
  CHECK(step.maker(*program.find_value("n")) == nullptr);
  CHECK(find_last_node(plan.steps[2]) == 2);
}

TEST_CASE("a node reads what its steps read, through values that only the plan has") {
  const Program program = make_lowered_program();
  const Plan plan = make_lowered_plan(program);
  const LoweredStep step({&program, &plan, 1, {}});
  CHECK(step.steps(0).native());
  CHECK(step.steps(0).reads == std::set<PlanValueId>{kX});
  for (const size_t node : {size_t{1}, size_t{2}}) {
    CHECK(step.steps(node).any);
    CHECK_FALSE(step.steps(node).native());
    CHECK(step.steps(node).reads == std::set<PlanValueId>{kExp});
  }
}

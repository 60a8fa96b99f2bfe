// Views of views lie in the memory of the first of them.
#include "lissome/train/budget/facts/plan_roots.h"

#include <doctest/doctest.h>

#include "lissome/runtime/step/move/view_steps.h"

using namespace lissome;

namespace {

PlanStep view_as(PlanValueId x, PlanValueId y) {
  ViewStep view;
  view.x = {x};
  view.y = {y};
  view.form = "reshape";
  return write_step(view);
}

}  // namespace

TEST_CASE("a view of a view has the root of the first, and what no step makes has no maker") {
  Plan plan;
  plan.values.resize(4);
  plan.values[0].storage = Storage::input;
  plan.values[1].storage = Storage::arena;
  plan.values[2].storage = Storage::view;
  plan.values[3].storage = Storage::view;
  PlanStep made;
  made.kernel = kReferenceStep;
  made.operands = {PlanValueId{0}};
  made.results = {PlanValueId{1}};
  plan.steps = {made, view_as(PlanValueId{1}, PlanValueId{2}), view_as(PlanValueId{2}, PlanValueId{3})};
  const PlanRoots found = find_plan_roots(plan);
  CHECK(found.roots == std::vector<PlanValueId>{PlanValueId{0}, PlanValueId{1}, PlanValueId{1}, PlanValueId{1}});
  CHECK(found.makers == std::vector<int>{-1, 0, 1, 2});
}

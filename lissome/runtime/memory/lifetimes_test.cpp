// Lifetimes through chains of views and aliases, beside what follows from listing all memory that a value may lie in.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

#include "lissome/runtime/session/binding.h"

using namespace lissome;

namespace {

PlanValueId add(Plan& plan, Storage storage) {
  return plan.add_value({"v" + std::to_string(plan.values.size()), storage, PlanKind::tensor, Dtype::f32, true, {}});
}

PlanStep make_step(std::string_view kernel, std::vector<PlanValueId> operands, PlanValueId result) {
  PlanStep step;
  step.kernel = kernel;
  step.operands = std::move(operands), step.results = {result};
  return step;
}

// Steps of ours, views, and steps of libtorch that may give aliases, of random earlier values.
Plan make_random_plan(std::mt19937& random, int steps) {
  Plan plan;
  plan.inputs = {{"x", add(plan, Storage::input)}};
  for (int i = 0; i < steps; ++i) {
    const auto pick = [&] { return plan.value_ids()[random() % plan.values.size()]; };
    const std::vector<PlanValueId> operands = {pick(), pick()};
    const unsigned kind = random() % 4;
    if (kind == 0) {
      plan.steps.push_back(make_step("view", {operands[0]}, add(plan, Storage::view)));
    } else if (kind == 1) {
      plan.steps.push_back(make_step("add_f32", operands, add(plan, Storage::arena)));
    } else {
      plan.steps.push_back(make_step(kReferenceStep, operands, add(plan, Storage::held)));
      plan.steps.back().keeps_operands = kind == 2;
    }
  }
  for (int i = 0; i < 3; ++i) {
    PlanOutput output{"y" + std::to_string(i), plan.value_ids()[random() % plan.values.size()], {}};
    if (i == 2) output.leaves_after = static_cast<int>(random() % static_cast<unsigned>(steps));
    plan.outputs.push_back(output);
  }
  return plan;
}

Lifetimes list_lifetimes(const Plan& plan) {
  const size_t count = plan.values.size();
  Lifetimes found{std::vector<int>(count, -1), std::vector<int>(count, -1), std::vector<int>(count, -1)};
  std::vector<std::set<size_t>> lies_in(count);  // arena values
  const auto touch = [&](PlanValueId value, int step, std::vector<int>& last) {
    for (const size_t root : lies_in[static_cast<size_t>(value)]) last[root] = std::max(last[root], step);
  };
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    const auto result = static_cast<size_t>(step.results[0]);
    for (const PlanValueId operand : step.operands) {
      touch(operand, static_cast<int>(i), found.last);
      const std::set<size_t>& more = lies_in[static_cast<size_t>(operand)];
      const bool passes = plan.values[result].storage == Storage::view || step.keeps_operands;
      if (passes) lies_in[result].insert(more.begin(), more.end());
    }
    if (plan.values[result].storage != Storage::arena) continue;
    lies_in[result] = {result};
    found.first[result] = found.last[result] = static_cast<int>(i);
  }
  for (const PlanOutput& output : plan.outputs) {
    const bool early = output.leaves_after >= 0;
    touch(output.value, early ? output.leaves_after : static_cast<int>(plan.steps.size()), found.last);
    touch(output.value, output.leaves_after, found.given);
  }
  return found;
}

}  // namespace

TEST_CASE("values live as long as whatever may lie in their memory") {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const Plan plan = make_random_plan(random, 40);
    const Lifetimes expected = list_lifetimes(plan), found = find_lifetimes(plan);
    CHECK(found.first == expected.first);
    CHECK(found.last == expected.last);
    CHECK(found.given == expected.given);
  }
}

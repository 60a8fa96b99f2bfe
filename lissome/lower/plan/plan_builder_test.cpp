// Where values lie in memory, and which copies that saves.
#include "lissome/lower/plan/plan_builder.h"

#include <ATen/ops/randn.h>

#include <algorithm>

#include "lissome/lower/program_check.h"

using namespace lissome;

namespace {

Plan lower_fast(const Program& program) {
  LowerOptions options;
  options.effort = Effort::fast;
  options.dense_outputs = false;
  return lower_program(program, options);
}

long count_copies(const Plan& plan) {
  return std::count_if(plan.steps.begin(), plan.steps.end(),
                       [](const PlanStep& step) { return step.kernel == "copy"; });
}

void check_copies(const Program& program, const Sizes& x, long copies) {
  const auto plan = std::make_shared<Plan>(lower_fast(program));
  CHECK(count_copies(*plan) == copies);
  Session session(plan);
  const std::vector<c10::IValue> inputs = {at::randn(x)};
  check_same(run_session(session, inputs), interpret(program, inputs));
}

}  // namespace

TEST_CASE("halves of channels are gated where they lie, and the next convolution reads the gates uncopied") {
  for (const char* gate : {"%a: f32[n, 16, 40] = aten::slice.Tensor(%1, 1, 0, 16)\n"
                           "%b: f32[n, 16, 40] = aten::slice.Tensor(%1, 1, 16, 32)\n"
                           "%c: f32[n, 16, 40] = aten::tanh(%a)\n"
                           "%d: f32[n, 16, 40] = aten::sigmoid(%b)\n"
                           "%e: f32[n, 16, 40] = aten::mul.Tensor(%c, %d)\n",
                           "%p: list = aten::chunk(%1, 2, 1)\n"
                           "%a: f32[n, 16, 40] = lissome::getitem(%p, 0)\n"
                           "%b: f32[n, 16, 40] = lissome::getitem(%p, 1)\n"
                           "%e: f32[n, 16, 40] = aten::mul.Tensor(%a, %b)\n",
                           "%e: f32[n, 16, 40] = aten::glu(%1, 1)\n"}) {
    CAPTURE(gate);
    const std::string text =
        "input %x: f32[n, 8, 40]\nparameter @w: f32[32, 8, 3]\nparameter @v: f32[8, 16, 1]\n"
        "%1: f32[n, 32, 40] = aten::convolution(%x, @w, none, [1], [1], [1], false, [0], 1)\n" +
        std::string(gate) +
        "%2: f32[n, 8, 40] = aten::convolution(%e, @v, none, [1], [0], [1], false, [0], 1)\nreturn %2\n";
    const Program program = parse_program(text, {{"w", at::randn({32, 8, 3})}, {"v", at::randn({8, 16, 1})}});
    check_copies(program, {2, 8, 40}, 1);  // of the input, whose channels come first
  }
}

TEST_CASE("a convolution reads what a transpose shows with channels last uncopied") {
  const Program program = parse_program(R"(
    input %x: f32[n, 40, 24]
    parameter @w: f32[16, 24, 3]
    %1: f32[n, 24, 40] = aten::transpose.int(%x, 1, 2)
    %2: f32[n, 16, 40] = aten::convolution(%1, @w, none, [1], [1], [1], false, [0], 1)
    return %2
  )",
                                        {{"w", at::randn({16, 24, 3})}});
  check_copies(program, {2, 40, 24}, 0);
}

TEST_CASE("a sum of rows and of transposed values stays in row order") {
  const Program program = parse_program(R"(
    input %x: f32[n, 24, 24]
    parameter @w: f32[24, 24]
    %1: f32[n, 24, 24] = aten::transpose.int(%x, 1, 2)
    %2: f32[n, 24, 24] = aten::add.Tensor(%x, %1)
    %3: f32[n, 24, 24] = aten::linear(%2, @w)
    return %3
  )",
                                        {{"w", at::randn({24, 24})}});
  check_copies(program, {2, 24, 24}, 0);
}

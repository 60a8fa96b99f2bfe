// Depthwise convolutions that become one step with the 1x1 behind them, and those that must not.
#include <ATen/core/ivalue.h>
#include <ATen/ops/randn.h>

#include <algorithm>

#include "lissome/lower/program_check.h"

using namespace lissome;

namespace {

Plan lower_joined(const Program& program) {
  set_cache_folder("none");
  LowerOptions options;
  options.effort = Effort::fast;
  options.forced = {{"*", "separable_f32"}};
  return lower_program(program, options);
}

void check_runs(const Program& program, const Plan& plan, const std::vector<std::vector<c10::IValue>>& all_inputs) {
  for (const int threads : {1, 2}) {
    SessionOptions options;
    options.threads = threads;
    Session session(std::make_shared<Plan>(plan), options);
    for (const auto& inputs : all_inputs) check_same(run_session(session, inputs), interpret(program, inputs));
  }
}

// A depthwise convolution and `rest`, which reads its result %1 and x, both f32[1, 8, 12, 12].
Program make_pair(const std::string& rest, const char* first) {
  const std::string text = R"(
    input %x: f32[1, 8, 12, 12]
    parameter @d: f32[8, 1, 3, 3]
    parameter @p: f32[8, 8, 1, 1]
    parameter @g: f32[8, 4, 1, 1]
    parameter @w: f32[8, 8, 3, 3]
    %1: f32[1, 8, 12, 12] = lissome::conv_act(%x, @d, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 8, )" +
                           std::string(first) + ")\n" + rest;
  return parse_program(text, {{"d", at::randn({8, 1, 3, 3})},
                              {"p", at::randn({8, 8, 1, 1})},
                              {"g", at::randn({8, 4, 1, 1})},
                              {"w", at::randn({8, 8, 3, 3})}});
}

constexpr const char* kPlain = R"("none")";

}  // namespace

TEST_CASE("a depthwise convolution and the 1x1 behind it are one step, with both activations and the residual") {
  const Program program = parse_program(R"(
    dim batch in 1..8
    input %x: f32[batch, 40, 13, 11]
    input %z: f32[batch, 24, 7, 6]
    parameter @d: f32[40, 1, 3, 3]
    parameter @db: f32[40]
    parameter @p: f32[24, 40, 1, 1]
    parameter @pb: f32[24]
    %1: f32[batch, 40, 7, 6] = lissome::conv_act(%x, @d, @db, [2, 2], [1, 1], [1, 1], false, [0, 0], 40, "relu6")
    %2: f32[batch, 24, 7, 6] =
      lissome::conv_act(%1, @p, @pb, [1, 1], [0, 0], [1, 1], false, [0, 0], 1, "silu", residual=%z)
    return %2
  )",
                                        {{"d", at::randn({40, 1, 3, 3})},
                                         {"db", at::randn({40})},
                                         {"p", at::randn({24, 40, 1, 1})},
                                         {"pb", at::randn({24})}});
  const Plan plan = lower_joined(program);
  CHECK(count_steps(plan, "separable_f32") == 1);
  CHECK(count_steps(plan, "depthwise_f32") + count_steps(plan, "conv_f32") == 0);
  const auto step = std::find_if(plan.steps.begin(), plan.steps.end(),
                                 [](const PlanStep& each) { return each.kernel == "separable_f32"; });
  REQUIRE(step->origins.size() == 2);
  CHECK(step->origins[0].node == "1");
  CHECK(step->origins[1].node == "2");
  std::vector<std::vector<c10::IValue>> inputs;
  for (const int64_t batch : {1, 5, 2})
    inputs.push_back({at::randn({batch, 40, 13, 11}), at::randn({batch, 24, 7, 6})});
  check_runs(program, plan, inputs);
}

TEST_CASE("a residual that the depthwise convolution reads too, and one dimension") {
  const Program image = make_pair(R"(
    %2: f32[1, 8, 12, 12] =
      lissome::conv_act(%1, @p, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1, "relu", residual=%x)
    %3: f32[1, 8, 12, 12] = aten::convolution(%2, @d, none, [1, 1], [2, 2], [2, 2], false, [0, 0], 8)
    %4: f32[1, 8, 12, 12] =
      lissome::conv_act(%3, @p, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1, "none", residual=%2)
    return %4
  )",
                                  kPlain);
  const Plan plan = lower_joined(image);
  CHECK(count_steps(plan, "separable_f32") == 2);
  check_runs(image, plan, {{at::randn({1, 8, 12, 12})}});
  const Program line = parse_program(R"(
    input %x: f32[2, 6, 300]
    parameter @d: f32[6, 1, 5]
    parameter @p: f32[9, 6, 1]
    %1: f32[2, 6, 300] = aten::convolution(%x, @d, none, [1], [4], [2], false, [0], 6)
    %2: f32[2, 9, 300] = aten::convolution(%1, @p, none, [1], [0], [1], false, [0], 1)
    return %2
  )",
                                     {{"d", at::randn({6, 1, 5})}, {"p", at::randn({9, 6, 1})}});
  CHECK(count_steps(lower_joined(line), "separable_f32") == 1);
  check_runs(line, lower_joined(line), {{at::randn({2, 6, 300})}});
}

TEST_CASE("what others need, and what is no product of pixels, stays apart") {
  const std::pair<const char*, const char*> cases[] = {
      {R"(
    %2: f32[1, 8, 12, 12] = aten::convolution(%1, @p, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)
    return %2, %1
  )",
       kPlain},
      {R"(
    %2: f32[1, 8, 12, 12] = aten::convolution(%1, @p, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)
    %3: f32[1, 8, 12, 12] = aten::convolution(%1, @w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    return %2, %3
  )",
       kPlain},
      {R"(
    %2: f32[1, 8, 12, 12] =
      lissome::conv_act(%1, @p, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1, "none", residual=%1)
    return %2
  )",
       kPlain},
      {R"(
    %2: f32[1, 8, 12, 12] =
      lissome::conv_act(%x, @p, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1, "none", residual=%1)
    return %2
  )",
       kPlain},
      {R"(
    %2: f32[1, 8, 6, 6] = aten::convolution(%1, @p, none, [2, 2], [0, 0], [1, 1], false, [0, 0], 1)
    return %2
  )",
       kPlain},
      {R"(
    %2: f32[1, 8, 14, 14] = aten::convolution(%1, @p, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    return %2
  )",
       kPlain},
      {R"(
    %2: f32[1, 8, 12, 12] = aten::convolution(%1, @g, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 2)
    return %2
  )",
       kPlain},
      {R"(
    %2: f32[1, 8, 12, 12] = aten::convolution(%1, @w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    return %2
  )",
       kPlain},
      {R"(
    %2: f32[1, 8, 12, 12] = aten::convolution(%1, @p, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)
    return %2
  )",
       R"("none", residual=%x)"},
  };
  for (const auto& [rest, first] : cases) {
    CAPTURE(rest);
    const Program program = make_pair(rest, first);
    const Plan plan = lower_joined(program);
    CHECK(count_steps(plan, "separable_f32") == 0);
    CHECK(count_steps(plan, "depthwise_f32") == 1);
    check_runs(program, plan, {{at::randn({1, 8, 12, 12})}});
  }
}

TEST_CASE(
    "without timing what would leave the second level of cache is joined, with timing what made the plan faster") {
  set_cache_folder("none");
  mask_features("bf16");  // on tile registers products are faster apart
  const auto make = [](int64_t side) {
    std::string text = R"(
    input %x: f32[1, 32, SIDE, SIDE]
    parameter @d: f32[32, 1, 3, 3]
    parameter @p: f32[16, 32, 1, 1]
    %1: f32[1, 32, SIDE, SIDE] = aten::convolution(%x, @d, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 32)
    %2: f32[1, 16, SIDE, SIDE] = aten::convolution(%1, @p, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)
    return %2
  )";
    for (size_t at; (at = text.find("SIDE")) != std::string::npos;) text.replace(at, 4, std::to_string(side));
    return parse_program(text, {{"d", at::randn({32, 1, 3, 3})}, {"p", at::randn({16, 32, 1, 1})}});
  };
  LowerOptions options;
  options.effort = Effort::fast, options.threads = 1;
  CHECK(count_steps(lower_program(make(112), options), "separable_f32") == 1);
  CHECK(count_steps(lower_program(make(28), options), "separable_f32") == 0);
  options.effort = Effort::normal;
  const Plan timed = lower_program(make(112), options);
  const auto& candidates = timed.choices.at(0).candidates;
  CHECK(std::count_if(candidates.begin(), candidates.end(), [](const PlanCandidate& candidate) {
          return candidate.name == "separable_f32" && candidate.refused.empty() && candidate.nanoseconds > 0;
        }) == 1);
  CHECK((timed.choices.at(0).chosen == "separable_f32" || count_steps(timed, "separable_f32") == 0));
  mask_features("amx");
}

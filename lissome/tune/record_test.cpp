#include "lissome/tune/record.h"

#include <ATen/core/ivalue.h>

#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "lissome/tune.h"
#include "lissome/tune/advice.h"

namespace lissome {
namespace {

OptimizationRecord make_record() {
  OptimizationRecord record;
  record.batch = 8;
  record.seconds_original = 4e-3;
  record.seconds_final = 2e-3;
  record.memory_final = 20 << 20;
  record.size_final = 15 << 20;
  LayerRecord slow{"encoder", "net.py:3", "y = f(x)", "aten::linear", "linear_f32", "f32", 2e-3, 1.5e-3, 1 << 20};
  LayerRecord quick = slow;
  quick.module = "head";
  quick.seconds_after = 1e-4;
  record.layers = {quick, slow};
  return record;
}

bool mentions(const std::vector<std::string>& lines, const std::string& word) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(word) != std::string::npos; });
}

TEST_CASE("a missed latency names the slowest layer and what it would take") {
  OptimizationRecord record = make_record();
  const GoalRecord goal{"latency", "s", 1e-3, 2e-3, false, {}};
  const std::string blocker = find_blocker(goal, record);
  CHECK(blocker.find("'encoder'") != std::string::npos);
  CHECK(blocker.find("takes 93.75 % of the 2.00 ms") != std::string::npos);
  const std::vector<std::string> advice = advise(goal, record);
  CHECK(mentions(advice, "2.0 times less work"));
  CHECK(mentions(advice, "hardware"));
}

TEST_CASE("advice on int8 depends on the reason why it was not accepted") {
  OptimizationRecord record = make_record();
  const GoalRecord goal{"latency", "s", 1e-3, 2e-3, false, {}};
  StepRecord& int8 = record.steps.emplace_back();
  int8.name = "int8";
  int8.reason = "lossy steps must be judged on data: give --data";
  CHECK(mentions(advise(goal, record), "give --data"));
  int8.reason = kNoTimeLeft;
  CHECK(mentions(advise(goal, record), "give a longer --time"));
  int8.reason = "loses 0.12, 0.005 is allowed (would be 2.00 times as fast)";
  CHECK(mentions(advise(goal, record), "--max-loss"));
  int8.reason = "3.0 % slower (+1.0 % to +5.0 %)";
  CHECK_FALSE(mentions(advise(goal, record), "int8"));
  int8.accepted = true;
  CHECK_FALSE(mentions(advise(goal, record), "int8"));
}

TEST_CASE("a missed memory goal names the weights, and a smaller batch where there is one") {
  OptimizationRecord record = make_record();
  const GoalRecord goal{"memory", "B", 1 << 20, 20 << 20, false, {}};
  CHECK(find_blocker(goal, record).find("15.0 MiB of the 20.0 MiB") != std::string::npos);
  CHECK(mentions(advise(goal, record), "use 4 samples instead of 8"));
  CHECK(mentions(advise(goal, record), "recomputation"));
  record.batch = 1;
  CHECK_FALSE(mentions(advise(goal, record), "smaller batch"));
}

TEST_CASE("the answer says whether the result is faster, slower or neither") {
  OptimizationRecord record = make_record();
  record.speedup = {2.0, {1.5, 2.5}};
  CHECK(make_answer(record).starts_with(
      "2.00 times faster (median of pairs; 1.50 to 2.50): 2.00 ms instead of 4.00 ms, "));
  record.speedup = {0.25, {0.125, 0.5}};
  CHECK(make_answer(record).starts_with("4.00 times slower (median of pairs; 2.00 to 8.00): "));
  record.speedup = {0.9, {0.5, 1.5}};
  CHECK(make_answer(record).starts_with("not faster beyond noise: "));
  CHECK(make_answer(record).find("20.0 MiB of memory instead of ") != std::string::npos);
}

TEST_CASE("a record as JSON holds every figure") {
  OptimizationRecord record = make_record();
  StepRecord step;
  step.stage = "computation";
  step.name = "int8";
  step.reason = "loses too much";
  step.ratio = {0.5, {0.4, 0.6}, 0.99, 0.01};
  step.quality_after = 0.75;
  step.notes = {"a note"};
  record.steps = {step};
  record.goals = {{"latency", "s", 1e-3, 2e-3, false, {"buy hardware"}}};
  const Json json = to_json(record);
  CHECK(json.at("seconds_final") == 2e-3);
  CHECK(json.at("batch") == 8);
  CHECK(json.at("quality_final").is_null());
  CHECK(json.at("goals").at(0).at("advice").at(0) == "buy hardware");
  const Json& first = json.at("steps").at(0);
  CHECK(first.at("accepted") == false);
  CHECK(first.at("ratio").at("interval") == Json{0.4, 0.6});
  CHECK(first.at("quality_before").is_null());
  CHECK(first.at("quality_after") == 0.75);
  CHECK(first.at("notes").at(0) == "a note");
  CHECK(json.at("layers").at(1).at("source") == "net.py:3");
  CHECK(parse_json(print_json(json), "record") == json);
}

TEST_CASE("a search without data keeps only what pays, and says what it left out") {
  const Program program = parse_program(R"(
    input %x: f32[4, 32]
    parameter @w: f32[32, 32]
    %1: f32[4, 32] = aten::linear(%x, @w)
    %2: f32[4, 32] = aten::clone(%1)
    %3: f32[4, 32] = aten::relu(%2)
    return %3
  )");
  OptimizeOptions options;
  options.seconds = 10;
  options.threads = 1;
  options.goal.latency = 1e-9;
  const Optimized result = optimize(program, nullptr, options);
  CHECK_FALSE(result.met);
  CHECK(result.record.answer.find("goal not met: latency") != std::string::npos);
  CHECK_FALSE(result.record.blocker.empty());
  CHECK(result.record.threads == 1);
  bool left_out = false;
  for (const StepRecord& step : result.record.steps) {
    CHECK_FALSE(step.reason.empty());
    left_out = left_out || step.reason.find("--data") != std::string::npos;
    const bool kept = step.reason.find("it is kept") != std::string::npos;
    if (step.accepted && !kept) CHECK(step.ratio.interval.high <= 1);
  }
  CHECK(left_out);
}

TEST_CASE("a search can be interrupted wherever it looks, and gives the best so far") {
  const Program program = parse_program(R"(
    dim n in 1..64
    input %x: f32[n, 16]
    parameter @w: f32[16, 16]
    %1: f32[n, 16] = aten::linear(%x, @w)
    %2: f32[n, 16] = aten::relu(%1)
    %3: f32[n, 16] = aten::linear(%2, @w)
    %4: f32[n, 16] = aten::relu(%3)
    %5: f32[n, 16] = aten::linear(%4, @w)
    return %5
  )");
  // Many samples: most of the places are in the midst of judging a step by them.
  const Array x = make_array(Dtype::f32, {20'000, 16});
  for (int64_t i = 0; i < x.elements(); ++i) x.data<float>()[i] = static_cast<float>(i * i % 17) - 8;
  const Dataset data = make_dataset({{"x", x}}, {}, "data");
  OptimizeOptions options;
  options.seconds = 1;
  options.threads = 1;
  options.goal.max_loss = 1;
  int64_t polls = 0, first = std::numeric_limits<int64_t>::max();
  WorkControl control;
  control.should_stop = [&] { return ++polls >= first; };
  CHECK_FALSE(optimize(program, &data, options, control).record.interrupted);
  const int64_t all = polls;
  for (int64_t place = 0; place < 16; ++place) {
    first = 1 + all * place / 16;
    polls = 0;
    CAPTURE(first);
    const bool interrupted = optimize(program, &data, options, control).record.interrupted;
    CHECK(interrupted == (polls >= first));
  }
}

TEST_CASE("an interrupted search gives the original back") {
  const Program program = parse_program("%1 = aten::relu(%x: f32[4, 32])");
  WorkControl control;
  control.should_stop = [] { return true; };
  OptimizeOptions options;
  options.seconds = 10;
  options.threads = 1;
  const Optimized result = optimize(program, nullptr, options, control);
  CHECK(result.record.interrupted);
  for (const StepRecord& step : result.record.steps) CHECK_FALSE(step.accepted);
  CHECK(same_program(result.program, program));
}

}  // namespace
}  // namespace lissome

// Schedules change when nodes run and what memory they take, never the results: compared bit by bit, over recompute
// sets drawn at random and over those that a budget chooses.
#include "lissome/train/remat/recompute.h"

#include <ATen/Context.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include <random>

#include "lissome/differentiate.h"
#include "lissome/lower.h"
#include "lissome/pass.h"
#include "lissome/train/remat/greedy_recompute.h"
#include "lissome/train/rewrite/keep_modules.h"
#include "lissome/train/rewrite/lift_weights.h"
#include "lissome/train/step/loss.h"
#include "lissome/train/step/training_step.h"
#include "tests/expect_error.h"

using namespace lissome;

namespace {

constexpr int64_t kLargeBatch = 256;

// Three blocks of batch norm, dropout, products and views of them: all that recomputing could get wrong.
std::string make_tower_text() {
  std::string text =
      "dim n in 2..512\n"
      "input %x: f32[n, 64]\n"
      "parameter @head: f32[10, 64]\n";
  for (int i = 0; i < 3; ++i) {
    const std::string block = "blocks." + std::to_string(i);
    text += "parameter @" + block + ".up: f32[256, 64]\nparameter @" + block + ".down: f32[64, 128]\n" + "parameter @" +
            block + ".scale: f32[64]\nparameter @" + block + ".shift: f32[64]\n" + "buffer @" + block +
            ".mean: f32[64]\nbuffer @" + block + ".variance: f32[64]\n";
  }
  std::string x = "%x", writes;
  for (int i = 0; i < 3; ++i) {
    const std::string b = "@blocks." + std::to_string(i), at = "_" + std::to_string(i);
    text += "%norm" + at + ": f32[n, 64], %batch_mean" + at + ": f32[64], %inverse" + at + ": f32[64], %mean" + at +
            ": f32[64], %variance" + at + ": f32[64] = aten::_native_batch_norm_legit_functional(" + x + ", " + b +
            ".scale, " + b + ".shift, " + b + ".mean, " + b + ".variance, true, 0.1, 1e-05)\n";
    writes += b + ".mean <- %mean" + at + "\n" + b + ".variance <- %variance" + at + "\n";
    text += "%up" + at + ": f32[n, 256] = aten::linear(%norm" + at + ", " + b + ".up)\n";
    text += "%gelu" + at + ": f32[n, 256] = aten::gelu(%up" + at + ")\n";
    text += "%drop" + at + ": f32[n, 256] = aten::dropout(%gelu" + at + ", 0.25, true)\n";
    text += "%left" + at + ": f32[n, 128] = aten::slice.Tensor(%drop" + at + ", 1, 0, 128)\n";
    text += "%right" + at + ": f32[n, 128] = aten::slice.Tensor(%drop" + at + ", 1, 128, 256)\n";
    text += "%gate" + at + ": f32[n, 128] = aten::mul.Tensor(%left" + at + ", %right" + at + ")\n";
    text += "%down" + at + ": f32[n, 64] = aten::linear(%gate" + at + ", " + b + ".down)\n";
    text += "%sum" + at + ": f32[n, 64] = aten::add.Tensor(" + x + ", %down" + at + ")\n";
    x = "%sum" + at;
  }
  return text + "%scores: f32[n, 10] = aten::linear(" + x + ", @head)\n" + writes + "return %scores\n";
}

Program make_tower_model() {
  Program model = parse_program(make_tower_text());
  at::manual_seed(3);
  for (Weight& weight : model.weights) weight.tensor.uniform_(-0.3, 0.3);
  for (Weight& weight : model.weights) {
    if (weight.name.ends_with("variance")) weight.tensor.fill_(1);
  }
  return attach_loss(model, {}, Dtype::i64, {});
}

std::vector<at::Tensor> make_tower_inputs(int64_t batch) {
  at::manual_seed(4);
  return {at::randn({batch, 64}), at::randint(0, 10, {batch})};
}

// Outputs, gradients and new state of one run after the same seed.
std::vector<at::Tensor> run_lifted(const Program& program, std::vector<at::Tensor> inputs,
                                   const std::vector<at::Tensor>& weights) {
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  at::manual_seed(9);
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& output : interpret(program, {inputs.begin(), inputs.end()}))
    tensors.push_back(output.toTensor());
  tensors.push_back(at::rand({4}));  // the generator's state afterwards
  return tensors;
}

void check_equal(const std::vector<at::Tensor>& left, const std::vector<at::Tensor>& right) {
  REQUIRE(left.size() == right.size());
  for (size_t i = 0; i < left.size(); ++i) CHECK(at::equal(left[i], right[i]));
}

struct RecomputedStep {
  Program program;
  std::vector<at::Tensor> weights;
  StepModel model;
};

RecomputedStep make_tower_step() {
  const Program with_loss = make_tower_model();
  std::vector<std::string> names;
  for (const Weight& weight : with_loss.weights) {
    if (weight.role == WeightRole::parameter) names.push_back(weight.name);
  }
  Lifted lifted = lift_weights(differentiate_program(with_loss, names, make_tower_inputs(3)));
  run_pipeline(lifted.program);
  LowerOptions options;
  options.effort = Effort::fast;
  const Plan plan = lower_program(lifted.program, options);
  std::vector<at::Tensor> inputs = make_tower_inputs(kLargeBatch);
  inputs.insert(inputs.end(), lifted.weights.begin(), lifted.weights.end());
  std::vector<Sizes> sizes;
  for (const at::Tensor& input : inputs) sizes.push_back(input.sizes().vec());
  StepFacts facts = describe_step({&lifted.program, &plan, 2}, inputs, sizes);
  return {lifted.program, lifted.weights, std::move(facts.model)};
}

// After each node, any value that it touches may be freed.
RecomputeSet draw_recompute_set(const StepModel& model, std::mt19937& random, double share) {
  RecomputeSet recomputed;
  std::uniform_real_distribution<double> draw(0, 1);
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    const auto consider = [&](int value) {
      const int owner = model.owner[static_cast<size_t>(value)];
      if (owner < 0 || draw(random) > share) return;
      const int producer = model.producer[static_cast<size_t>(owner)];
      if (model.nodes[static_cast<size_t>(producer)].repeatable) recomputed.insert({owner, static_cast<int>(i)});
    };
    for (const int value : model.nodes[i].reads) consider(value);
    for (const int value : model.nodes[i].results) consider(value);
  }
  return recomputed;
}

}  // namespace

TEST_CASE("whatever is recomputed: outputs, gradients, state and random state keep their bits") {
  const RecomputedStep step = make_tower_step();
  const std::vector<at::Tensor> inputs = make_tower_inputs(kLargeBatch);
  const std::vector<at::Tensor> plain = run_lifted(step.program, inputs, step.weights);
  std::mt19937 random(1);
  size_t longest = 0;
  for (int trial = 0; trial < 20; ++trial) {
    const RecomputeSet recomputed = draw_recompute_set(step.model, random, 0.02 * (trial + 1));
    const RecomputeSchedule made = make_recompute_schedule(step.model, make_plain_schedule(step.model), recomputed);
    REQUIRE(check_schedule(step.model, made.schedule).empty());
    CHECK(made.purpose.size() == made.schedule.size());
    longest = std::max(longest, made.schedule.size());
    check_equal(run_lifted(apply_schedule(step.program, made.schedule), inputs, step.weights), plain);
  }
  CHECK(longest > step.model.nodes.size() * 3 / 2);
}

TEST_CASE("random nodes run once, and recomputed values free their memory") {
  const RecomputedStep step = make_tower_step();
  const RunOrder plain = make_plain_schedule(step.model);
  const int64_t peak = judge_schedule(step.model, plain, 0).peak;
  const FittedSchedule fitted = fit_by_recompute(step.model, plain, peak * 3 / 4);
  CHECK(fitted.fits);
  CHECK(fitted.cost.peak <= peak * 3 / 4);
  int random = 0, runs = 0;
  for (size_t i = 0; i < step.model.nodes.size(); ++i) random += step.model.nodes[i].repeatable ? 0 : 1;
  for (const int position : fitted.schedule) runs += step.model.nodes[static_cast<size_t>(position)].repeatable ? 0 : 1;
  CHECK(random >= 3);
  CHECK(runs == random);
}

TEST_CASE("no search ends below the least peak, and the quick ways come close to it") {
  const RecomputedStep step = make_tower_step();
  const RunOrder plain = make_plain_schedule(step.model);
  const int64_t least = find_least_peak(step.model);
  CHECK(least > 0);
  for (const int64_t limit : {int64_t{1}, least, 2 * least}) {
    CAPTURE(limit);
    const FittedSchedule quick = fit_quickly(step.model, plain, limit),
                         fitted = fit_by_recompute(step.model, plain, limit);
    CHECK(quick.cost.peak >= least);
    CHECK(fitted.cost.peak >= least);
    CHECK(fitted.cost.peak <= quick.cost.peak);
    CHECK(check_schedule(step.model, quick.schedule).empty());
  }
}

TEST_CASE("a training step inside a budget: the same bits, and less memory, as predicted") {
  const std::vector<at::Tensor> inputs = make_tower_inputs(kLargeBatch);
  const auto run = [&](std::optional<StepBudget> budget, StepMemory* measured, StepForecast* predicted) {
    const Program model = make_tower_model();
    TrainingStep step(model, make_tower_inputs(3), {.threads = 2, .budget = std::move(budget)});
    at::manual_seed(5);
    std::vector<at::Tensor> results = step.run(inputs);
    for (at::Tensor& result : results) result = result.clone();
    for (const at::Tensor& gradient : step.gradients()) results.push_back(gradient.clone());
    for (const Weight& weight : model.weights) results.push_back(weight.tensor.clone());
    results.push_back(at::rand({4}));
    if (measured != nullptr) *measured = measure_memory(step.session(), [&] { step.run(inputs); });
    if (predicted != nullptr) *predicted = step.forecast().value();
    return results;
  };
  const std::vector<Sizes> sizes = {{kLargeBatch, 64}, {kLargeBatch}};
  const std::vector<at::Tensor> plain = run(std::nullopt, nullptr, nullptr);
  StepMemory measured;
  StepForecast all, predicted;
  check_equal(run(StepBudget{.recompute = KeepAll{}, .sizes = sizes}, &measured, &all), plain);
  CHECK(static_cast<double>(measured.total()) ==
        doctest::Approx(static_cast<double>(all.chosen.total())).epsilon(0.03));
  for (const double share : {0.9, 0.75}) {
    const auto memory = static_cast<int64_t>(share * static_cast<double>(all.plain.total()));
    check_equal(run(StepBudget{.memory = memory, .sizes = sizes}, &measured, &predicted), plain);
    CHECK(predicted.recomputed_nodes > 0);
    CHECK(predicted.chosen.total() <= memory);
    CHECK(measured.total() <= memory);
  }
  check_equal(run(StepBudget{.recompute = RecomputeModules{"*"}, .sizes = sizes}, nullptr, nullptr), plain);
}

TEST_CASE("a budget below the least says what the least is") {
  const StepBudget budget{.memory = 1000, .sizes = {{kLargeBatch, 64}, {kLargeBatch}}};
  const Program model = make_tower_model();
  EXPECT_ERROR(over_budget, TrainingStep(model, make_tower_inputs(3), {.threads = 2, .budget = budget}),
               "at the least");
}

TEST_CASE("words of --recompute") {
  CHECK(std::holds_alternative<KeepAll>(parse_recompute("none")));
  CHECK(std::get<RecomputeEvery>(parse_recompute("every:2")).modules == 2);
  CHECK(std::get<RecomputeModules>(parse_recompute("modules:blocks.*")).pattern == "blocks.*");
  CHECK(std::get<RecomputeToFit>(parse_recompute("auto")).share == 1);
  CHECK(std::get<RecomputeToFit>(parse_recompute("adaptive:0.8")).share == doctest::Approx(0.8));
  for (const char* text : {"", "every", "every:0", "every:x", "modules:", "adaptive:2", "sometimes"})
    EXPECT_ERROR(usage, parse_recompute(text), "--recompute must be");
}

// Scores in blocks: the same loss and gradients, bit by bit on our kernels, with a fraction of the memory.
#include "lissome/train/rewrite/split_scores.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include <algorithm>

#include "lissome/differentiate.h"
#include "lissome/lower.h"
#include "lissome/pass.h"
#include "lissome/train/rewrite/lift_weights.h"
#include "lissome/train/step/loss.h"
#include "lissome/train/step/training_step.h"
#include "tests/program_helpers.h"

using namespace lissome;

namespace {

constexpr int64_t kScoredBatch = 16, kLength = 32, kWords = 800;

// A linear layer, then the scores of each word: those are the largest by far.
Program make_model(const std::string& length = "32", const std::string& scores = "%scores") {
  const std::string rows = "[n, " + length + ", 16]";
  Program model = parse_program(
      "dim n in 2..64\n"
      "input %x: f32" +
      rows +
      "\nparameter @first: f32[16, 16]\nparameter @words: f32[800, 16]\n"
      "%h: f32" +
      rows +
      " = aten::linear(%x, @first)\n"
      "%g: f32" +
      rows +
      " = aten::gelu(%h)\n"
      "%scores: f32[n, " +
      length +
      ", 800] = aten::linear(%g, @words)\n"
      "%half: f32[n, " +
      length +
      ", 800] = aten::mul.Tensor(%scores, 0.5)\n"
      "return " +
      scores + "\n");
  at::manual_seed(3);
  for (Weight& weight : model.weights) weight.tensor.uniform_(-0.5, 0.5);
  return model;
}

Program make_trained() { return attach_loss(make_model(), {}, Dtype::i64, {kLength}); }

std::vector<at::Tensor> make_examples(int64_t length = kLength) {
  return {at::randn({3, length, 16}), at::randint(0, kWords, {3, length})};
}

// Some labels are ignored.
std::vector<at::Tensor> make_inputs(int64_t batch, int64_t length = kLength) {
  at::manual_seed(4);
  at::Tensor labels = at::randint(0, kWords, {batch, length});
  labels.select(1, 3).fill_(-100);
  return {at::randn({batch, length, 16}), labels};
}

struct Step {
  Program program;
  std::vector<at::Tensor> inputs;
  Plan plan;
};

Step make_step(Program model, int64_t length = kLength) {
  std::vector<std::string> names;
  for (const Weight& weight : model.weights) names.push_back(weight.name);
  model.outputs.erase(model.outputs.begin() + 1, model.outputs.end());
  Lifted lifted = lift_weights(differentiate_program(model, names, make_examples(length)));
  run_pipeline(lifted.program);
  LowerOptions options;
  options.effort = Effort::fast;
  Plan plan = lower_program(lifted.program, options);
  std::vector<at::Tensor> inputs = make_inputs(kScoredBatch, length);
  inputs.insert(inputs.end(), lifted.weights.begin(), lifted.weights.end());
  return {lifted.program, inputs, std::move(plan)};
}

struct TrainedScores {
  std::vector<at::Tensor> results;  // loss and gradients
  StepForecast predicted;
  StepMemory measured;
};

TrainedScores train(const StepBudget& budget, int64_t batch) {
  const std::vector<at::Tensor> inputs = make_inputs(batch);
  TrainingStep step(make_trained(), make_examples(), {.threads = 3, .budget = budget, .outputs = false});
  TrainedScores trained;
  for (const at::Tensor& output : step.run(inputs)) trained.results.push_back(output.clone());
  for (const at::Tensor& gradient : step.gradients()) trained.results.push_back(gradient.clone());
  trained.predicted = step.forecast().value();
  trained.measured = measure_memory(step.session(), [&] { step.run(inputs); });
  return trained;
}

}  // namespace

TEST_CASE("scores in blocks mean what they meant whole") {
  Step step = make_step(make_trained());
  const std::vector<at::Tensor> whole = interpret_tensors(step.program, step.inputs);
  CHECK(split_scores(step.program, step.plan, {{"n", kScoredBatch}}) == 4);
  CHECK(count_ops(step.program, "aten::log_softmax.int") == 4);
  CHECK(count_ops(step.program, "lissome::add_products") == 3);
  const std::vector<at::Tensor> parts = interpret_tensors(step.program, step.inputs);
  REQUIRE(parts.size() == whole.size());
  for (size_t i = 0; i < parts.size(); ++i) CHECK(at::allclose(parts[i], whole[i], 1e-5, 1e-7));
  CHECK(split_scores(step.program, step.plan, {{"n", kScoredBatch}}) == 0);
}

TEST_CASE("scores that others read, rows that are odd or few, and products of other kernels stay whole") {
  const auto split = [](Step step, int64_t batch) { return split_scores(step.program, step.plan, {{"n", batch}}); };
  CHECK(split(make_step(make_trained()), 7) == 0);  // 224 rows
  CHECK(split(make_step(attach_loss(make_model("31"), {}, Dtype::i64, {31}), 31), kScoredBatch) == 0);
  CHECK(split(make_step(attach_loss(make_model("32", "%half"), {}, Dtype::i64, {kLength})), kScoredBatch) == 0);
  Step ignoring = make_step(make_trained());
  for (Node& node : ignoring.program.nodes) {
    const bool loss = node.is("aten::nll_loss_forward") || node.is("aten::nll_loss_backward");
    if (loss) node.argument("ignore_index") = 7;  // which is a class
  }
  CHECK(split(std::move(ignoring), kScoredBatch) == 0);
  Step other = make_step(make_trained());
  for (PlanStep& step : other.plan.steps) {
    if (step.kernel == "matmul_f32") step.kernel = kReferenceStep;
  }
  CHECK(split(std::move(other), kScoredBatch) == 0);
}

TEST_CASE("a budget that whole scores do not fit is met in blocks, with the bits of the whole step") {
  const StepBudget free{.recompute = KeepAll{}, .sizes = {{kScoredBatch, kLength, 16}, {kScoredBatch, kLength}}};
  const TrainedScores whole = train(free, kScoredBatch);
  StepBudget tight{.memory = whole.predicted.plain.total() / 2, .sizes = free.sizes};
  // Half a batch leaves the blocks as they are, with half the rows.
  for (const int64_t batch : {kScoredBatch, kScoredBatch / 2}) {
    const TrainedScores plain = train(free, batch), parts = train(tight, batch);
    CHECK(parts.predicted.method.starts_with("scores in blocks"));
    CHECK(parts.predicted.plain.total() == whole.predicted.plain.total());
    CHECK(parts.predicted.chosen.total() <= tight.memory);
    CHECK(parts.measured.total() <= tight.memory);
    REQUIRE(parts.results.size() == plain.results.size());
    for (size_t i = 0; i < plain.results.size(); ++i) CHECK(at::equal(parts.results[i], plain.results[i]));
  }
  tight.memory = whole.predicted.plain.total();
  CHECK(train(tight, kScoredBatch).predicted.method == "keep all");
}

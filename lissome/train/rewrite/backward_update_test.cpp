// Updates inside the backward pass against updates behind it: the same bits, less memory; and what they do not go with.
#include "lissome/train/rewrite/backward_update.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>
#include <doctest/doctest.h>

#include "lissome/train/budget/try_budget.h"
#include "lissome/train/loop/trainer.h"
#include "lissome/train/remat/test_waves.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

constexpr int64_t kUpdateSamples = 48, kWidth = 256;
constexpr int64_t kUpdatedMatrix = kWidth * kWidth * 4;  // bytes

// Five products of the same size, of which two share a weight; the norm's weight is read by nothing but its own
// gradient.
constexpr const char* kDeep = R"(
  dim n in 2..64
  training
  input %x: f32[n, 256]
  parameter @norm.weight: f32[256]
  parameter @norm.bias: f32[256]
  parameter @a: f32[256, 256]
  parameter @b: f32[256, 256]
  parameter @c: f32[256, 256]
  parameter @again: f32[256, 256] tied @b
  parameter @d: f32[256, 256]
  parameter @d.bias: f32[256]
  parameter @head: f32[5, 256]
  %normed: f32[n, 256] = aten::layer_norm(%x, [256], @norm.weight, @norm.bias, 1e-05)
  %first: f32[n, 256] = aten::linear(%normed, @a)
  %bent: f32[n, 256] = aten::gelu(%first)
  %second: f32[n, 256] = aten::linear(%bent, @b)
  %some: f32[n, 256] = aten::dropout(%second, 0.25, true)
  %third: f32[n, 256] = aten::linear(%some, @c)
  %cut: f32[n, 256] = aten::relu(%third)
  %fourth: f32[n, 256] = aten::linear(%cut, @again)
  %sum: f32[n, 256] = aten::add.Tensor(%fourth, %bent)
  %fifth: f32[n, 256] = aten::linear(%sum, @d, @d.bias)
  %scores: f32[n, 5] = aten::linear(%fifth, @head)
  return %scores
)";

Program make_deep() {
  Program program = parse_program(kDeep);
  at::manual_seed(3);
  for (Weight& weight : program.weights) weight.tensor.uniform_(-0.1, 0.1);
  return program;
}

Dataset make_update_data() { return make_waves(kUpdateSamples, kWidth); }

TrainOptions make_deep_options(bool in_backward) {
  TrainOptions options;
  options.epochs = 2, options.batch = 16, options.clip_norm = 0;
  options.schedule = "cosine";
  options.update_in_backward = in_backward;
  return options;
}

Trained train_deep(const TrainOptions& options) { return train(make_deep(), make_update_data(), nullptr, options); }

void check_same_weights(const Trained& left, const Trained& right) {
  REQUIRE(left.program.weights.size() == right.program.weights.size());
  for (size_t i = 0; i < left.program.weights.size(); ++i) {
    CAPTURE(left.program.weights[i].name);
    CHECK(at::equal(left.program.weights[i].tensor, right.program.weights[i].tensor));
  }
}

}  // namespace

TEST_CASE("updates in the backward pass give the same bits, and gradients take no memory of their own") {
  for (const OptimizerOptions& optimizer :
       {OptimizerOptions(AdamW{}), OptimizerOptions(Sgd{.lr = 0.1, .momentum = 0.9}), OptimizerOptions(Lion{}),
        OptimizerOptions(Adafactor{})}) {
    TrainOptions behind = make_deep_options(false), inside = make_deep_options(true);
    behind.optimizer = inside.optimizer = optimizer;
    const Trained wanted = train_deep(behind), seen = train_deep(inside);
    CHECK(wanted.record.steps == 6);
    CHECK_FALSE(at::equal(seen.program.find_weight("a")->tensor, make_deep().find_weight("a")->tensor));
    check_same_weights(seen, wanted);
    CHECK(seen.record.history.points.back().gradient_norm ==
          doctest::Approx(wanted.record.history.points.back().gradient_norm).epsilon(1e-9));
    // Of four matrices of gradients, one or two exist at a time.
    CHECK(seen.record.peak_memory <= wanted.record.peak_memory - 2 * kUpdatedMatrix);
  }
}

TEST_CASE("updates in the backward pass go with groups, an average, bf16, states in a file and recomputation") {
  const TemporaryFolder folder;
  const auto check = [&](const auto& change) {
    TrainOptions behind = make_deep_options(false), inside = make_deep_options(true);
    change(behind), change(inside);
    check_same_weights(train_deep(inside), train_deep(behind));
  };
  check([](TrainOptions& options) {
    options.groups = {{.pattern = "c", .frozen = true}, {.pattern = "d*", .lr_factor = 0.5, .weight_decay = 0.1}};
    options.average_decay = 0.9;
  });
  check([](TrainOptions& options) { options.precision = Dtype::bf16; });
  check([&](TrainOptions& options) { options.offload = folder.file("."); });
  check([](TrainOptions& options) {
    options.memory = int64_t{256} << 20;
    options.recompute = RecomputeModules{"*"};
  });
}

TEST_CASE("a budget counts the gradients that are there at once, and what it tells comes true") {
  TrainOptions behind = make_deep_options(false), inside = make_deep_options(true);
  behind.memory = inside.memory = int64_t{256} << 20;
  behind.recompute = inside.recompute = RecomputeToFit{};
  const BudgetTrial kept = try_budget(make_deep(), make_update_data(), behind),
                    given = try_budget(make_deep(), make_update_data(), inside);
  CHECK(kept.fixed.gradients > 4 * kUpdatedMatrix);
  CHECK(given.fixed.gradients == 0);
  CHECK(given.beside() + given.predicted.chosen.total() <=
        kept.beside() + kept.predicted.chosen.total() - 2 * kUpdatedMatrix);
  CHECK(given.measured.arena == given.predicted.chosen.arena);
  CHECK(static_cast<double>(given.measured.total()) ==
        doctest::Approx(static_cast<double>(given.predicted.chosen.total())).epsilon(0.01));
  // A bound that a step which keeps its gradients cannot meet.
  inside.memory = given.beside() + given.predicted.chosen.total();
  behind.memory = inside.memory;
  EXPECT_ERROR(over_budget, try_budget(make_deep(), make_update_data(), behind), "take");
  const BudgetTrial fitted = try_budget(make_deep(), make_update_data(), inside);
  CHECK(fitted.beside() + fitted.measured.arena <= inside.memory);
}

TEST_CASE("hooks change each gradient before its weight is updated") {
  GradientHooks hooks;
  std::vector<std::string> seen;
  hooks.add("*", [&](const std::string& name, const at::Tensor& gradient) {
    seen.push_back(name);
    return gradient.mul(0.5);
  });
  TrainOptions behind = make_deep_options(false), inside = make_deep_options(true);
  behind.optimizer = inside.optimizer = Sgd{.lr = 0.1};
  behind.gradient_hooks = inside.gradient_hooks = &hooks;
  behind.max_steps = inside.max_steps = 1;
  const Trained wanted = train_deep(behind);
  CHECK(seen.size() == 8);
  seen.clear();
  check_same_weights(train_deep(inside), wanted);
  REQUIRE(seen.size() == 8);
  CHECK(seen.front() == "head");
}

TEST_CASE("a gradient that is not finite skips the whole step, or ends training where weights were updated before it") {
  const auto train_with_nan = [](const std::string& name, bool in_backward) {
    GradientHooks hooks;
    int calls = 0;
    hooks.add(name, [&](const std::string&, const at::Tensor& gradient) {
      return ++calls == 2 ? gradient.mul(std::nan("")) : gradient;
    });
    TrainOptions options = make_deep_options(in_backward);
    options.gradient_hooks = &hooks;
    return train_deep(options);
  };
  const Trained wanted = train_with_nan("head", false), seen = train_with_nan("head", true);
  CHECK(wanted.record.skipped_steps == 1);
  CHECK(seen.record.skipped_steps == 1);
  check_same_weights(seen, wanted);
  EXPECT_ERROR(invalid_input, train_with_nan("a", true), "the gradient of 'a' is not finite", "No snapshot");
}

TEST_CASE("updates in the backward pass refuse what needs all gradients at once") {
  const auto refuse = [](const auto& change, const char* text) {
    TrainOptions options = make_deep_options(true);
    change(options);
    EXPECT_ERROR(usage, train_deep(options), text);
  };
  refuse([](TrainOptions& options) { options.clip_norm = 1; }, "--clip 0");
  refuse([](TrainOptions& options) { options.accumulate = 2; }, "larger batch");
  refuse([](TrainOptions& options) { options.precision = Dtype::f16; }, "Use bf16");
}

TEST_CASE("a batch that does not fit is not cut into parts where weights are updated in the backward pass") {
  TrainOptions options = make_deep_options(true);
  options.memory = 4 * kUpdatedMatrix * 3 + kUpdatedMatrix;  // weights and states; next to nothing for the step
  EXPECT_ERROR(over_budget, train_deep(options), "does not fit into memory");
}

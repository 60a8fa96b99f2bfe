// Ranks that each run a part of a batch, against one run of the whole. Ranks are threads here; processes are in
// tests/cli.
#include "lissome/train/rewrite/synchronize_batch_norm.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <doctest/doctest.h>

#include <limits>
#include <numeric>

#include "lissome/train/loop/learn/norm_link.h"
#include "lissome/train/step/training_step.h"
#include "tests/expect_error.h"
#include "tests/run_ranks.h"

using namespace lissome;

namespace {

// A convolution in front, whose gradient goes through the norm.
Program make_normed(bool reads_statistics = false) {
  Program program = parse_program(
      std::string("training\n"
                  "dim n in 1..64\n"
                  "input %x: f32[n, 3, 5]\n"
                  "input %target: f32[n, 4, 4]\n"
                  "parameter @w: f32[4, 3, 2]\n"
                  "parameter @scale: f32[4]\n"
                  "parameter @shift: f32[4]\n"
                  "buffer @mean: f32[4]\n"
                  "buffer @variance: f32[4]\n"
                  "%h: f32[n, 4, 4] = aten::conv1d(%x, @w)\n"
                  "%y: f32[n, 4, 4], %seen: f32[4], %inverse: f32[4], %new_mean: f32[4], %new_variance: f32[4] = "
                  "aten::_native_batch_norm_legit_functional(%h, @scale, @shift, @mean, @variance, true, 0.25, 1e-5)\n"
                  "%loss: f32[] = aten::mse_loss(%y, %target)\n") +
      "@mean <- %new_mean\n@variance <- %new_variance\nreturn %loss" + (reads_statistics ? ", %seen" : "") + "\n");
  // Drawn numbers would be others on each thread.
  for (Weight& weight : program.weights)
    weight.tensor =
        at::arange(weight.tensor.numel(), at::kFloat).mul_(1.7).sin_().abs_().add_(0.5).view_as(weight.tensor);
  return program;
}

struct Result {
  std::vector<at::Tensor> gradients, state;
};

Result run_step(const std::vector<at::Tensor>& inputs, RankLink* link) {
  const Program program = make_normed();
  const std::vector<at::Tensor> examples = {at::ones({7, 3, 5}), at::ones({7, 4, 4})};
  TrainingStep step(program, examples, {.threads = 1, .synchronize_batch_norm = true});
  const RankLinkScope scope(link);
  step.run(inputs);
  Result result;
  for (const at::Tensor& gradient : step.gradients()) result.gradients.push_back(gradient.clone());
  for (const char* name : {"mean", "variance"}) result.state.push_back(program.find_weight(name)->tensor.clone());
  return result;
}

double distance(const at::Tensor& left, const at::Tensor& right) {
  return left.sub(right).abs().max().item().toDouble();
}

}  // namespace

TEST_CASE("parts of a batch, equal ones or not, have the statistics and gradients of the whole") {
  at::manual_seed(2);
  const at::Tensor x = at::randn({12, 3, 5}).mul_(3).add_(at::arange(12).mul_(2).reshape({12, 1, 1}));
  const at::Tensor target = at::randn({12, 4, 4});
  const Result whole = run_step({x, target}, nullptr);
  for (const std::vector<int64_t>& parts :
       std::vector<std::vector<int64_t>>{{6, 6}, {11, 1}, {4, 0, 8}, {1, 2, 3, 6}}) {
    std::vector<Result> of(parts.size());
    const std::vector<std::string> errors = run_ranks(static_cast<int>(parts.size()), 20, [&](Group& group) {
      const auto rank = static_cast<size_t>(group.rank());
      const int64_t first = std::accumulate(parts.begin(), parts.begin() + group.rank(), int64_t{0});
      NormLink link(group);
      link.begin(static_cast<double>(parts[rank]), 1);
      // A rank without samples runs some that must not count, whatever they are.
      const bool counts = parts[rank] > 0;
      const at::Tensor own = counts ? x.narrow(0, first, parts[rank])
                                    : at::full({2, 3, 5}, std::numeric_limits<double>::quiet_NaN(), at::kFloat);
      const at::Tensor wanted = counts ? target.narrow(0, first, parts[rank]) : target.narrow(0, 0, 2);
      of[rank] = run_step({own, wanted}, &link);
    });
    for (const std::string& error : errors) CHECK(error == "");
    for (size_t i = 0; i < whole.gradients.size(); ++i) {
      at::Tensor sum = at::zeros_like(whole.gradients[i]);
      for (size_t rank = 0; rank < parts.size(); ++rank) {
        if (parts[rank] > 0) sum.add_(of[rank].gradients.at(i), static_cast<double>(parts[rank]) / 12);
      }
      CHECK(distance(sum, whole.gradients[i]) < 1e-5);
    }
    for (const Result& result : of) {
      CHECK(result.state[0].equal(of[0].state[0]));
      CHECK(result.state[1].equal(of[0].state[1]));
      CHECK(distance(result.state[0], whole.state[0]) < 1e-5);
      CHECK(distance(result.state[1], whole.state[1]) < 1e-5 * whole.state[1].max().item().toDouble());
    }
  }
}

TEST_CASE("a process alone has the gradients of a plain batch norm") {
  at::manual_seed(2);
  const std::vector<at::Tensor> inputs = {at::randn({12, 3, 5}), at::randn({12, 4, 4})};
  const Result synchronized = run_step(inputs, nullptr);
  const Program program = make_normed();
  TrainingStep plain(program, {at::randn({7, 3, 5}), at::randn({7, 4, 4})}, {.threads = 1});
  plain.run(inputs);
  for (size_t i = 0; i < synchronized.gradients.size(); ++i)
    CHECK(distance(synchronized.gradients[i], plain.gradients()[i]) < 1e-5);
  CHECK(distance(synchronized.state[0], program.find_weight("mean")->tensor) < 1e-5);
  CHECK(distance(synchronized.state[1], program.find_weight("variance")->tensor) < 1e-5);
}

TEST_CASE("norms by running statistics stay, and so does what another node reads the statistics of") {
  Program frozen = parse_program(
      "input %x: f32[2, 4, 4]\n"
      "buffer @mean: f32[4]\n"
      "buffer @variance: f32[4]\n"
      "%y: f32[2, 4, 4], %a: f32[0], %b: f32[0] = "
      "aten::native_batch_norm(%x, none, none, @mean, @variance, false, 0.25, 1e-5)\n"
      "return %y\n");
  CHECK(synchronize_batch_norm(frozen) == 0);
  Program read = make_normed(true);
  EXPECT_ERROR(unsupported, synchronize_batch_norm(read), "batch_norm", "read by another node");
}

// The times of nodes against the time of the step that they make up.
#include "lissome/train/budget/facts/node_meter.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include <cmath>

#include "lissome/lower.h"
#include "lissome/measure.h"

using namespace lissome;

TEST_CASE("what nodes take, one by one, is what a step takes, where a node became several steps too" *
          doctest::test_suite("measured")) {
  const Program program = parse_program(R"(
    dim n in 1..8
    input %x: f32[n, 32, 64, 64]
    input %w: f32[32, 32, 3, 3]
    %c: f32[n, 32, 64, 64] = aten::convolution(%x, %w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    return %c
  )");
  LowerOptions options;
  options.effort = Effort::fast;
  const Plan plan = lower_program(program, options);
  CHECK(plan.steps.size() >= 3);  // layouts and weights are changed in steps of their own
  const std::vector<at::Tensor> inputs = {at::randn({8, 32, 64, 64}), at::randn({32, 32, 3, 3})};
  std::vector<TensorView> views;
  for (const at::Tensor& input : inputs)
    views.push_back({Dtype::f32, input.sizes().vec(), input.strides().vec(), input.data_ptr()});
  Session session(std::make_shared<Plan>(plan), {.threads = 1});
  double least = INFINITY;
  for (int i = 0; i < 20; ++i) {
    const Stopwatch watch;
    session.run(views);
    least = std::min(least, watch.seconds());
  }
  const std::vector<double> seconds = measure_nodes({&program, &plan, 1, {}}, inputs).seconds;
  REQUIRE(seconds.size() == 1);
  CHECK(seconds[0] > 0.75 * least);  // a busy machine can only make it more
}

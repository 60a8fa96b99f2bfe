// An image that a convolution reads in channels-last order is copied for the forward pass and again for the gradient.
#include "lissome/train/rewrite/repeat_copies.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "lissome/footprint.h"
#include "lissome/lower.h"

using namespace lissome;

namespace {

// Between the two readers of the image stands what takes most.
constexpr const char* kText = R"(
  input %x: f32[2, 8, 32, 32]
  input %w: f32[16, 8, 3, 3]
  %y: f32[2, 16, 32, 32] = aten::convolution(%x, %w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
  %exp: f32[2, 16, 32, 32] = aten::exp(%y)
  %both: f32[2, 32, 32, 32] = aten::cat([%y, %exp], 1)
  %left: f32[2, 16, 32, 32] = aten::slice.Tensor(%both, 1, 0, 16)
  %part: f32[2, 16, 32, 32] = aten::mul.Tensor(%left, %exp)
  %none: none, %dw: f32[16, 8, 3, 3], %nothing: none =
    aten::convolution_backward(%part, %x, %w, [0], [1, 1], [1, 1], [1, 1], false, [0, 0], 1, [false, true, false])
  return %dw
)";

Plan make_plan() {
  LowerOptions options;
  options.effort = Effort::fast;
  return lower_program(parse_program(kText), options);
}

int64_t count_copies(const Plan& plan) {
  return std::count_if(plan.steps.begin(), plan.steps.end(),
                       [](const PlanStep& step) { return step.kernel == "copy"; });
}

Array run_plan(const Plan& plan, const at::Tensor& x, const at::Tensor& w) {
  std::vector<TensorView> views;
  for (const at::Tensor& tensor : {x, w})
    views.push_back({Dtype::f32, tensor.sizes().vec(), tensor.strides().vec(), tensor.data_ptr()});
  Session session(std::make_shared<Plan>(plan), {.threads = 2});
  return session.run(views).at(0);
}

}  // namespace

TEST_CASE("a copy of an input is made for each of its readers, and the bits stay") {
  at::manual_seed(3);
  const at::Tensor x = at::randn({2, 8, 32, 32}), w = at::randn({16, 8, 3, 3});
  const Plan before = make_plan();
  Plan after = before;
  CHECK(repeat_copies(after) == 1);
  CHECK(repeat_copies(after) == 0);
  CHECK(count_copies(after) == count_copies(before) + 1);
  const std::vector<Sizes> sizes = {x.sizes().vec(), w.sizes().vec()};
  const int64_t saved = find_footprint(before, sizes, 2).arena_bytes - find_footprint(after, sizes, 2).arena_bytes;
  CHECK(saved == x.numel() * 4);
  const Array wanted = run_plan(before, x, w), seen = run_plan(after, x, w);
  REQUIRE(seen.sizes == wanted.sizes);
  CHECK(std::memcmp(seen.storage.get(), wanted.storage.get(), static_cast<size_t>(w.numel()) * 4) == 0);
}

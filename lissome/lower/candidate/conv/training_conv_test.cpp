// The training forms of convolution, batch norm, ReLU and max pool on our own kernels, as training steps hold them.
#include <ATen/core/ivalue.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>

#include <algorithm>

#include "lissome/kernel.h"
#include "lissome/lower/program_check.h"

using namespace lissome;

namespace {

int64_t count_steps(const char* text, std::string_view kernel) {
  LowerOptions options;
  options.effort = Effort::fast;
  return count_steps(lower_program(parse_program(text), options), kernel);
}

// A residual block: relu(batch_norm(conv(x)) + x), then its gradient.
constexpr const char* kBlock = R"(
    dim n in 2..64
    input %images: f32[n, 3, 9, 8]
    input %first: f32[20, 3, 1, 1]
    input %w: f32[20, 20, 3, 3]
    input %scale: f32[20]
    input %shift: f32[20]
    input %mean: f32[20]
    input %var: f32[20]
    %x: f32[n, 20, 9, 8] = aten::convolution(%images, %first, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)
    %dy: f32[n, 20, 9, 8] = aten::convolution(%x, %w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %c: f32[n, 20, 9, 8] = aten::convolution(%x, %w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %b: f32[n, 20, 9, 8], %m: f32[20], %r: f32[20], %nm: f32[20], %nv: f32[20] =
      aten::_native_batch_norm_legit_functional(%c, %scale, %shift, %mean, %var, true, 0.1, 1e-05)
    %s: f32[n, 20, 9, 8] = aten::add.Tensor(%b, %x)
    %y: f32[n, 20, 9, 8] = aten::relu(%s)
    %g: f32[n, 20, 9, 8] = aten::threshold_backward(%dy, %y, 0)
    %dc: f32[n, 20, 9, 8], %dscale: f32[20], %dshift: f32[20] =
      aten::native_batch_norm_backward(%g, %c, %scale, %mean, %var, %m, %r, true, 1e-05, [true, true, true])
    %dx: f32[n, 20, 9, 8], %dw: f32[20, 20, 3, 3], %none: none =
      aten::convolution_backward(%dc, %x, %w, [0], [1, 1], [1, 1], [1, 1], false, [0, 0], 1, [true, true, false])
    return %y, %dx, %dw, %dscale, %dshift, %nm, %nv
)";

}  // namespace

TEST_CASE("a residual block and its gradient stay with us, its norm reads masks and adds on the way out") {
  for (const int64_t batch : {2, 5}) {
    check_program(kBlock, {},
                  {at::randn({batch, 3, 9, 8}), at::randn({20, 3, 1, 1}), at::randn({20, 20, 3, 3}), at::randn({20}),
                   at::randn({20}), at::randn({20}), at::rand({20})});
  }
  CHECK(count_steps(kBlock, "elementwise") == 0);
  CHECK(count_steps(kBlock, "channel_affine") == 2);
}

// relu(batch_norm(conv(x))), then its gradient, for which the convolution runs again.
constexpr const char* kPlainNorm = R"(
    dim n in 2..64
    input %x: f32[n, 20, 9, 8]
    input %w: f32[20, 20, 3, 3]
    input %other: f32[20, 20, 3, 3]
    input %scale: f32[20]
    input %shift: f32[20]
    input %mean: f32[20]
    input %var: f32[20]
    %c: f32[n, 20, 9, 8] = aten::convolution(%x, %w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %b: f32[n, 20, 9, 8], %m: f32[20], %r: f32[20], %nm: f32[20], %nv: f32[20] =
      aten::_native_batch_norm_legit_functional(%c, %scale, %shift, %mean, %var, true, 0.1, 1e-05)
    %y: f32[n, 20, 9, 8] = aten::relu(%b)
    %dy: f32[n, 20, 9, 8] = aten::convolution(%y, %w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %again: f32[n, 20, 9, 8] = aten::convolution(%x, WEIGHT, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %g: f32[n, 20, 9, 8] = aten::threshold_backward(%dy, %y, 0)
    %dc: f32[n, 20, 9, 8], %dscale: f32[20], %dshift: f32[20] =
      aten::native_batch_norm_backward(%g, %again, %scale, %mean, %var, %m, %r, true, 1e-05, [true, true, true])
    %dw0: none, %dw: f32[20, 20, 3, 3], %none: none =
      aten::convolution_backward(%dc, %x, %w, [0], [1, 1], [1, 1], [1, 1], false, [0, 0], 1, [false, true, false])
    return %dw, %dscale, %dshift, %nm, %nv
)";

// Steps of batch norm's gradient that make the mask of what was normalized.
int64_t count_rebuilt_masks(const std::string& text) {
  LowerOptions options;
  options.effort = Effort::fast;
  const Plan plan = lower_program(parse_program(text), options);
  return std::count_if(plan.steps.begin(), plan.steps.end(), [](const PlanStep& step) {
    return (step.kernel == "channel_sums" && step.operands.size() == 6) ||
           (step.kernel == "channel_affine" && step.operands.size() == 9);
  });
}

std::string replace_weight(const std::string& weight) {
  std::string text = kPlainNorm;
  return text.replace(text.find("WEIGHT"), 6, weight);
}

TEST_CASE("a norm's gradient makes ReLU's mask of what was normalized, also where that was recomputed") {
  const std::string same = replace_weight("%w");
  check_program(same.c_str(), {},
                {at::randn({3, 20, 9, 8}), at::randn({20, 20, 3, 3}), at::randn({20, 20, 3, 3}), at::randn({20}),
                 at::randn({20}), at::randn({20}), at::rand({20})});
  CHECK(count_rebuilt_masks(same) == 2);
  // Another input, with other weights or with a sum in between: the mask is read as it is.
  CHECK(count_rebuilt_masks(replace_weight("%other")) == 0);
  CHECK(count_rebuilt_masks(kBlock) == 0);
}

TEST_CASE("strided, grouped, dilated and transposed convolutions and their gradients stay with us") {
  check_program(R"(
    input %x: f32[2, 12, 13, 11]
    input %w: f32[18, 12, 3, 3]
    input %w1: f32[8, 12, 1, 1]
    input %wt: f32[12, 7, 2, 2]
    input %bias: f32[18]
    input %biast: f32[7]
    %y: f32[2, 18, 7, 6] = aten::convolution(%x, %w, %bias, [2, 2], [1, 1], [1, 1], false, [0, 0], 1)
    %dx: f32[2, 12, 13, 11], %dw: f32[18, 12, 3, 3], %db: f32[18] =
      aten::convolution_backward(%y, %x, %w, [18], [2, 2], [1, 1], [1, 1], false, [0, 0], 1, [true, true, true])
    %y1: f32[2, 8, 7, 6] = aten::convolution(%x, %w1, none, [2, 2], [0, 0], [1, 1], false, [0, 0], 1)
    %dx1: f32[2, 12, 13, 11], %dw1: f32[8, 12, 1, 1], %n1: none =
      aten::convolution_backward(%y1, %x, %w1, [0], [2, 2], [0, 0], [1, 1], false, [0, 0], 1, [true, true, false])
    %yt: f32[2, 7, 26, 22] = aten::convolution(%x, %wt, %biast, [2, 2], [0, 0], [1, 1], true, [0, 0], 1)
    %dxt: f32[2, 12, 13, 11], %dwt: f32[12, 7, 2, 2], %dbt: f32[7] =
      aten::convolution_backward(%yt, %x, %wt, [7], [2, 2], [0, 0], [1, 1], true, [0, 0], 1, [true, true, true])
    return %y, %dx, %dw, %db, %dx1, %dw1, %yt, %dxt, %dwt, %dbt
  )",
                {},
                {at::randn({2, 12, 13, 11}), at::randn({18, 12, 3, 3}), at::randn({8, 12, 1, 1}),
                 at::randn({12, 7, 2, 2}), at::randn({18}), at::randn({7})});
  check_program(R"(
    input %x: f32[3, 12, 30]
    input %w: f32[9, 4, 5]
    %y: f32[3, 9, 26] = aten::convolution(%x, %w, none, [1], [2], [2], false, [0], 3)
    %dx: f32[3, 12, 30], %dw: f32[9, 4, 5], %db: f32[9] =
      aten::convolution_backward(%y, %x, %w, [9], [1], [2], [2], false, [0], 3, [true, true, true])
    return %y, %dx, %dw, %db
  )",
                {}, {at::randn({3, 12, 30}), at::randn({9, 4, 5})});
  check_program(R"(
    input %x: f32[2, 12, 13, 11]
    input %w: f32[18, 4, 3, 3]
    %y: f32[2, 18, 6, 5] = aten::convolution(%x, %w, none, [2, 2], [1, 1], [2, 2], false, [0, 0], 3)
    %dx: f32[2, 12, 13, 11], %dw: f32[18, 4, 3, 3], %db: f32[18] =
      aten::convolution_backward(%y, %x, %w, [18], [2, 2], [1, 1], [2, 2], false, [0, 0], 3, [true, true, true])
    return %y, %dx, %dw, %db
  )",
                {}, {at::randn({2, 12, 13, 11}), at::randn({18, 4, 3, 3})});
}

TEST_CASE("the first layer's gradient, a max pool's and a norm of rows stay with us") {
  check_program(R"(
    dim n in 2..64
    input %x: f32[n, 3, 33, 32]
    input %w: f32[16, 3, 7, 7]
    input %d: f32[n, 16, 9, 8]
    %c: f32[n, 16, 17, 16] = aten::convolution(%x, %w, none, [2, 2], [3, 3], [1, 1], false, [0, 0], 1)
    %p: f32[n, 16, 9, 8], %i: i64[n, 16, 9, 8] = aten::max_pool2d_with_indices(%c, [3, 3], [2, 2], [1, 1])
    %dc: f32[n, 16, 17, 16] = aten::max_pool2d_with_indices_backward(%d, %c, [3, 3], [2, 2], [1, 1], [1, 1], false, %i)
    %none: none, %dw: f32[16, 3, 7, 7], %nothing: none =
      aten::convolution_backward(%dc, %x, %w, [0], [2, 2], [3, 3], [1, 1], false, [0, 0], 1, [false, true, false])
    return %p, %dc, %dw
  )",
                {}, {at::randn({3, 3, 33, 32}), at::randn({16, 3, 7, 7}), at::randn({3, 16, 9, 8})});
  check_program(R"(
    dim n in 2..64
    input %x: f32[n, 40]
    input %scale: f32[40]
    input %mean: f32[40]
    input %var: f32[40]
    input %dy: f32[n, 40]
    %y: f32[n, 40], %m: f32[40], %r: f32[40], %nm: f32[40], %nv: f32[40] =
      aten::_native_batch_norm_legit_functional(%x, %scale, none, %mean, %var, true, 0.3, 0.001)
    %dx: f32[n, 40], %dscale: f32[40], %dshift: f32[40] =
      aten::native_batch_norm_backward(%dy, %x, %scale, %mean, %var, %m, %r, true, 0.001, [true, true, true])
    return %y, %dx, %dscale, %dshift, %nm, %nv
  )",
                {}, {at::randn({50, 40}), at::randn({40}), at::randn({40}), at::rand({40}), at::randn({50, 40})});
}

TEST_CASE("a first convolution reads the planes of its image as they lie") {
  constexpr const char* kFirst = R"(
    dim n in 2..64
    input %x: f32[n, 3, 33, 32]
    input %w: f32[16, 3, 7, 7]
    %y: f32[n, 16, 17, 16] = aten::convolution(%x, %w, none, [2, 2], [3, 3], [1, 1], false, [0, 0], 1)
    %z: f32[n, 16, 17, 16] = aten::exp(%y)
    return %z
)";
  check_program(kFirst, {}, {at::randn({3, 3, 33, 32}), at::randn({16, 3, 7, 7})});
  LowerOptions options;
  options.effort = Effort::fast;
  const Plan plan = lower_program(parse_program(kFirst), options);
  const auto conv = std::find_if(plan.steps.begin(), plan.steps.end(),
                                 [](const PlanStep& step) { return step.kernel == "conv_f32"; });
  REQUIRE(conv != plan.steps.end());
  const bool planes = conv->attributes.integer("planes", 0) != 0;
  CHECK(planes == (find_kernel("conv_f32").isa != Isa::amx));
  CHECK((conv->operands[0] == plan.inputs[0].value) == planes);
}

TEST_CASE("a norm's gradient gathers that of max pooling, which is never made") {
  constexpr const char* kPooled = R"(
    dim n in 2..64
    input %x: f32[n, 16, 17, 16]
    input %scale: f32[16]
    input %mean: f32[16]
    input %var: f32[16]
    input %d: f32[n, 16, 9, 8]
    %b: f32[n, 16, 17, 16], %m: f32[16], %r: f32[16], %nm: f32[16], %nv: f32[16] =
      aten::_native_batch_norm_legit_functional(%x, %scale, none, %mean, %var, true, 0.1, 1e-05)
    %p: f32[n, 16, 9, 8], %i: i64[n, 16, 9, 8] = aten::max_pool2d_with_indices(%b, [3, 3], [2, 2], [1, 1])
    %db: f32[n, 16, 17, 16] = aten::max_pool2d_with_indices_backward(%d, %b, [3, 3], [2, 2], [1, 1], [1, 1], false, %i)
    %dx: f32[n, 16, 17, 16], %dscale: f32[16], %dshift: f32[16] =
      aten::native_batch_norm_backward(%db, %x, %scale, %mean, %var, %m, %r, true, 1e-05, [true, true, true])
    return %p, %dx, %dscale, %nm, %nv)";
  const std::vector<c10::IValue> inputs = {at::randn({3, 16, 17, 16}), at::randn({16}), at::randn({16}), at::rand({16}),
                                           at::randn({3, 16, 9, 8})};
  const std::string gathered = kPooled + std::string("\n"), spread = kPooled + std::string(", %db\n");
  check_program(gathered.c_str(), {}, inputs);
  CHECK(count_steps(gathered.c_str(), "max_pool_gradient") == 0);
  // What leaves is made.
  check_program(spread.c_str(), {}, inputs);
  CHECK(count_steps(spread.c_str(), "max_pool_gradient") == 1);
}

TEST_CASE("indices that others read are torch's") {
  check_program(R"(
    input %x: f32[2, 4, 8, 8]
    %p: f32[2, 4, 4, 4], %i: i64[2, 4, 4, 4] = aten::max_pool2d_with_indices(%x, [2, 2])
    %dx: f32[2, 4, 8, 8] = aten::max_pool2d_with_indices_backward(%p, %x, [2, 2], [2, 2], [0, 0], [1, 1], false, %i)
    return %p, %i, %dx
  )",
                {}, {at::randn({2, 4, 8, 8})}, false);
}

TEST_CASE("computed weights take what is added and bent behind their sums") {
  constexpr const char* kText = R"(
    dim n in 2..64
    input %x: f32[n, 20, 9, 8]
    input %w: f32[24, 20, 3, 3]
    input %bias: f32[24]
    input %sum: f32[n, 24, 9, 8]
    %mixed: f32[n, 24, 9, 8] = aten::convolution(%x, %w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %added: f32[n, 24, 9, 8] = aten::mul.Tensor(%mixed, %sum)
    %y: f32[n, 24, 9, 8] = lissome::conv_act(%x, %w, %bias, [1, 1], [1, 1], [1, 1], false, [0, 0], 1, "relu", %added)
    return %y
)";
  CHECK(count_steps(kText, "conv_f32") == 2);
  check_program(kText, {},
                {at::randn({3, 20, 9, 8}), at::randn({24, 20, 3, 3}), at::randn({24}), at::randn({3, 24, 9, 8})});
}

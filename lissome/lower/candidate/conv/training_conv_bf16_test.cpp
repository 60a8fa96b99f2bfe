// The training forms of convolution, batch norm, ReLU and max pool in bf16, as autocast records them, on every level of
// instruction sets. As in candidate_bf16_test.cpp the judge is the same program in f32: ours may be no further from it
// than twice what PyTorch's own bf16 is.
#include <ATen/core/ivalue.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include "lissome/lower/bf16_check.h"

using namespace lissome;

namespace {

at::Tensor draw_values(std::vector<int64_t> sizes, double scale = 1) {
  return at::randn(sizes).mul(scale).to(at::kBFloat16).to(at::kFloat);
}

// A residual block, its gradient, and weights whose gradients are read as autocast reads them. The gradient of ReLU is
// masked by the input, whose signs no rounding changes: of the block's output some elements would fall on either side
// of zero by rounding, and each would count more than all the rounding that is judged here.
constexpr const char* kBlockBf16 = R"(
    dim n in 2..64
    input %images: f32[n, 3, 9, 8]
    input %first32: f32[32, 3, 1, 1]
    input %w32: f32[32, 32, 3, 3]
    input %scale: f32[32]
    input %shift: f32[32]
    input %mean: f32[32]
    input %var: f32[32]
    %i: DTYPE[n, 3, 9, 8] = aten::to.dtype(%images, DTYPE)
    %first: DTYPE[32, 3, 1, 1] = aten::to.dtype(%first32, DTYPE)
    %w: DTYPE[32, 32, 3, 3] = aten::to.dtype(%w32, DTYPE)
    %x: DTYPE[n, 32, 9, 8] = aten::convolution(%i, %first, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)
    %dy: DTYPE[n, 32, 9, 8] = aten::convolution(%x, %w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %c: DTYPE[n, 32, 9, 8] = aten::convolution(%x, %w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %b: DTYPE[n, 32, 9, 8], %m: f32[32], %r: f32[32], %nm: f32[32], %nv: f32[32] =
      aten::_native_batch_norm_legit_functional(%c, %scale, %shift, %mean, %var, true, 0.1, 1e-05)
    %s: DTYPE[n, 32, 9, 8] = aten::add.Tensor(%b, %x)
    %y: DTYPE[n, 32, 9, 8] = aten::relu(%s)
    %g: DTYPE[n, 32, 9, 8] = aten::threshold_backward(%dy, %x, 0)
    %dc: DTYPE[n, 32, 9, 8], %dscale: f32[32], %dshift: f32[32] =
      aten::native_batch_norm_backward(%g, %c, %scale, %mean, %var, %m, %r, true, 1e-05, [true, true, true])
    %dx: DTYPE[n, 32, 9, 8], %dw: DTYPE[32, 32, 3, 3], %none: none =
      aten::convolution_backward(%dc, %x, %w, [0], [1, 1], [1, 1], [1, 1], false, [0, 0], 1, [true, true, false])
    %dw32: f32[32, 32, 3, 3] = aten::to.dtype(%dw, f32)
    %nothing: none, %df: DTYPE[32, 3, 1, 1], %nobody: none =
      aten::convolution_backward(%dx, %i, %first, [0], [1, 1], [0, 0], [1, 1], false, [0, 0], 1, [false, true, false])
    %df32: f32[32, 3, 1, 1] = aten::to.dtype(%df, f32)
    return %y, %dx, %dw32, %df32, %dscale, %dshift, %nm, %nv
)";

}  // namespace

TEST_CASE("a residual block in bf16 and its gradient stay with us, as near to f32 as PyTorch's own, on every level") {
  for (const int64_t batch : {2, 5}) {
    check_beside_f32(kBlockBf16,
                     {draw_values({batch, 3, 9, 8}), draw_values({32, 3, 1, 1}), draw_values({32, 32, 3, 3}, 0.1),
                      at::randn({32}), at::randn({32}), at::randn({32}), at::rand({32})});
  }
  const auto plan = lower_natively(parse_as(kBlockBf16, "bf16"));
  int casts = 0, maps = 0;
  for (const PlanStep& step : plan->steps)
    casts += step.kernel == "elementwise", maps += step.kernel == "channel_affine";
  CHECK(maps == 2);
  CHECK(casts == 1);  // of the images, for the gradient of the first weight
}

TEST_CASE("strided, transposed and flat bf16 convolutions and their gradients stay with us") {
  check_beside_f32(R"(
    input %x32: f32[2, 12, 13, 11]
    input %w32: f32[18, 12, 3, 3]
    input %w132: f32[8, 12, 1, 1]
    input %wt32: f32[12, 7, 2, 2]
    input %bias32: f32[18]
    input %biast32: f32[7]
    %x: DTYPE[2, 12, 13, 11] = aten::to.dtype(%x32, DTYPE)
    %w: DTYPE[18, 12, 3, 3] = aten::to.dtype(%w32, DTYPE)
    %w1: DTYPE[8, 12, 1, 1] = aten::to.dtype(%w132, DTYPE)
    %wt: DTYPE[12, 7, 2, 2] = aten::to.dtype(%wt32, DTYPE)
    %bias: DTYPE[18] = aten::to.dtype(%bias32, DTYPE)
    %biast: DTYPE[7] = aten::to.dtype(%biast32, DTYPE)
    %y: DTYPE[2, 18, 7, 6] = aten::convolution(%x, %w, %bias, [2, 2], [1, 1], [1, 1], false, [0, 0], 1)
    %dx: DTYPE[2, 12, 13, 11], %dw: DTYPE[18, 12, 3, 3], %db: DTYPE[18] =
      aten::convolution_backward(%y, %x, %w, [18], [2, 2], [1, 1], [1, 1], false, [0, 0], 1, [true, true, true])
    %y1: DTYPE[2, 8, 7, 6] = aten::convolution(%x, %w1, none, [2, 2], [0, 0], [1, 1], false, [0, 0], 1)
    %dx1: DTYPE[2, 12, 13, 11], %dw1: DTYPE[8, 12, 1, 1], %n1: none =
      aten::convolution_backward(%y1, %x, %w1, [0], [2, 2], [0, 0], [1, 1], false, [0, 0], 1, [true, true, false])
    %yt: DTYPE[2, 7, 26, 22] = aten::convolution(%x, %wt, %biast, [2, 2], [0, 0], [1, 1], true, [0, 0], 1)
    %dxt: DTYPE[2, 12, 13, 11], %dwt: DTYPE[12, 7, 2, 2], %dbt: DTYPE[7] =
      aten::convolution_backward(%yt, %x, %wt, [7], [2, 2], [0, 0], [1, 1], true, [0, 0], 1, [true, true, true])
    return %y, %dx, %dw, %db, %dx1, %dw1, %yt, %dxt, %dwt, %dbt
  )",
                   {draw_values({2, 12, 13, 11}), draw_values({18, 12, 3, 3}, 0.1), draw_values({8, 12, 1, 1}),
                    draw_values({12, 7, 2, 2}, 0.3), draw_values({18}), draw_values({7})});
  check_beside_f32(R"(
    input %x32: f32[3, 12, 30]
    input %w32: f32[9, 12, 5]
    %x: DTYPE[3, 12, 30] = aten::to.dtype(%x32, DTYPE)
    %w: DTYPE[9, 12, 5] = aten::to.dtype(%w32, DTYPE)
    %y: DTYPE[3, 9, 15] = aten::convolution(%x, %w, none, [2], [2], [1], false, [0], 1)
    %dx: DTYPE[3, 12, 30], %dw: DTYPE[9, 12, 5], %db: DTYPE[9] =
      aten::convolution_backward(%y, %x, %w, [9], [2], [2], [1], false, [0], 1, [true, true, true])
    return %y, %dx, %dw, %db
  )",
                   {draw_values({3, 12, 30}), draw_values({9, 12, 5}, 0.2)});
  check_beside_f32(R"(
    input %x32: f32[2, 12, 13, 11]
    input %w32: f32[18, 4, 3, 3]
    %x: DTYPE[2, 12, 13, 11] = aten::to.dtype(%x32, DTYPE)
    %w: DTYPE[18, 4, 3, 3] = aten::to.dtype(%w32, DTYPE)
    %y: DTYPE[2, 18, 6, 5] = aten::convolution(%x, %w, none, [2, 2], [1, 1], [2, 2], false, [0, 0], 3)
    %dx: DTYPE[2, 12, 13, 11], %dw: DTYPE[18, 4, 3, 3], %db: DTYPE[18] =
      aten::convolution_backward(%y, %x, %w, [18], [2, 2], [1, 1], [2, 2], false, [0, 0], 3, [true, true, true])
    return %y, %dx, %dw, %db
  )",
                   {draw_values({2, 12, 13, 11}), draw_values({18, 4, 3, 3}, 0.2)});
}

TEST_CASE("bf16 convolutions of computed weights take what is added and bent behind their sums") {
  check_beside_f32(
      R"(
    input %x32: f32[2, 32, 9, 8]
    input %w32: f32[24, 32, 3, 3]
    input %bias32: f32[24]
    input %sum32: f32[2, 24, 9, 8]
    %x: DTYPE[2, 32, 9, 8] = aten::to.dtype(%x32, DTYPE)
    %w: DTYPE[24, 32, 3, 3] = aten::to.dtype(%w32, DTYPE)
    %bias: DTYPE[24] = aten::to.dtype(%bias32, DTYPE)
    %sum: DTYPE[2, 24, 9, 8] = aten::to.dtype(%sum32, DTYPE)
    %y: DTYPE[2, 24, 9, 8] = lissome::conv_act(%x, %w, %bias, [1, 1], [1, 1], [1, 1], false, [0, 0], 1, "sigmoid", %sum)
    return %y
)",
      {draw_values({2, 32, 9, 8}), draw_values({24, 32, 3, 3}, 0.1), draw_values({24}), draw_values({2, 24, 9, 8})});
}

TEST_CASE("a max pool in bf16, joined images and a loss over channels stay with us") {
  check_beside_f32(
      R"(
    dim n in 2..64
    input %x32: f32[n, 3, 17, 16]
    input %w32: f32[16, 3, 3, 3]
    input %head32: f32[5, 32, 1, 1]
    input %labels: i64[n, 9, 8]
    %x: DTYPE[n, 3, 17, 16] = aten::to.dtype(%x32, DTYPE)
    %w: DTYPE[16, 3, 3, 3] = aten::to.dtype(%w32, DTYPE)
    %head: DTYPE[5, 32, 1, 1] = aten::to.dtype(%head32, DTYPE)
    %c: DTYPE[n, 16, 17, 16] = aten::convolution(%x, %w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %p: DTYPE[n, 16, 9, 8], %i: i64[n, 16, 9, 8] = aten::max_pool2d_with_indices(%c, [3, 3], [2, 2], [1, 1])
    %r: DTYPE[n, 16, 9, 8] = aten::relu(%p)
    %j: DTYPE[n, 32, 9, 8] = aten::cat([%p, %r], 1)
    %s: DTYPE[n, 5, 9, 8] = aten::convolution(%j, %head, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)
    %s32: f32[n, 5, 9, 8] = aten::to.dtype(%s, f32)
    %l: f32[n, 5, 9, 8] = aten::_log_softmax(%s32, 1, false)
    %loss: f32[], %total: f32[] = aten::nll_loss2d_forward(%l, %labels, none, 1, -100)
    %one: f32[] = aten::ones_like(%loss)
    %dl: f32[n, 5, 9, 8] = aten::nll_loss2d_backward(%one, %l, %labels, none, 1, -100, %total)
    %ds32: f32[n, 5, 9, 8] = aten::_log_softmax_backward_data(%dl, %l, 1, f32)
    %ds: DTYPE[n, 5, 9, 8] = aten::to.dtype(%ds32, DTYPE)
    %dj: DTYPE[n, 32, 9, 8], %dh: DTYPE[5, 32, 1, 1], %none: none =
      aten::convolution_backward(%ds, %j, %head, [0], [1, 1], [0, 0], [1, 1], false, [0, 0], 1, [true, true, false])
    %dp: DTYPE[n, 16, 9, 8] = aten::slice.Tensor(%dj, 1, 0, 16)
    %dr: DTYPE[n, 16, 9, 8] = aten::slice.Tensor(%dj, 1, 16, 32)
    %dt: DTYPE[n, 16, 9, 8] = aten::threshold_backward(%dr, %r, 0)
    %da: DTYPE[n, 16, 9, 8] = aten::add.Tensor(%dp, %dt)
    %dc: DTYPE[n, 16, 17, 16] =
      aten::max_pool2d_with_indices_backward(%da, %c, [3, 3], [2, 2], [1, 1], [1, 1], false, %i)
    %nothing: none, %dw: DTYPE[16, 3, 3, 3], %nobody: none =
      aten::convolution_backward(%dc, %x, %w, [0], [1, 1], [1, 1], [1, 1], false, [0, 0], 1, [false, true, false])
    return %l, %loss, %dh, %dc, %dw
  )",
      {draw_values({3, 3, 17, 16}), draw_values({16, 3, 3, 3}, 0.2), draw_values({5, 32, 1, 1}, 0.2),
       at::randint(5, {3, 9, 8})});
}

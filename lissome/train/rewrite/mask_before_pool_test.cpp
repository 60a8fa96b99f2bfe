// Masks that moved before the gradient of max pooling: the same bits, from windows that overlap and from ties and NaN.
#include "lissome/train/rewrite/mask_before_pool.h"
#include "tests/program_helpers.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include <limits>

using namespace lissome;

namespace {

// `threshold` reads `masked`; `returned` leaves.
Program make_program(const std::string& masked, const std::string& returned) {
  return parse_program(R"(
  dim n in 2..8
  input %x: f32[n, 3, 12, 12]
  input %dy: f32[n, 3, 6, 6]
  %bent: f32[n, 3, 12, 12] = aten::relu(%x)
  %y: f32[n, 3, 6, 6], %indices: i64[n, 3, 6, 6] = aten::max_pool2d_with_indices(%bent, [3, 3], [2, 2], [1, 1])
  %gradient: f32[n, 3, 12, 12] =
    aten::max_pool2d_with_indices_backward(%dy, %bent, [3, 3], [2, 2], [1, 1], [1, 1], false, %indices)
  %dx: f32[n, 3, 12, 12] = aten::threshold_backward(%gradient, )" +
                       masked + R"(, 0)
  %twice: f32[n, 3, 12, 12] = aten::add.Tensor(%dx, %dx)
  return %y, %twice)" + returned +
                       "\n");
}

}  // namespace

TEST_CASE("a mask goes before the gradient of max pooling and asks what was pooled") {
  at::manual_seed(2);
  const at::Tensor x = at::randn({4, 3, 12, 12}), dy = at::randn({4, 3, 6, 6});
  x[0][0].fill_(-1), x[1][0].fill_(0.5);  // nothing passes; ties
  x[2][1][4][4] = std::numeric_limits<float>::quiet_NaN();
  const Program before = make_program("%bent", "");
  Program after = before;
  CHECK(mask_before_pool(after) == 1);
  CHECK(mask_before_pool(after) == 0);
  REQUIRE(after.nodes.size() == before.nodes.size());
  CHECK(after.nodes[2].is("aten::threshold_backward"));
  CHECK(after.nodes[2].argument("self") == Argument(after.nodes[1].results[0]));
  CHECK(after.nodes[3].is("aten::max_pool2d_with_indices_backward"));
  const std::vector<at::Tensor> wanted = interpret_tensors(before, {x, dy}), seen = interpret_tensors(after, {x, dy});
  REQUIRE(seen.size() == wanted.size());
  for (size_t i = 0; i < seen.size(); ++i) CHECK(at::equal(seen[i].nan_to_num(7), wanted[i].nan_to_num(7)));
}

TEST_CASE("masks of another value, and of gradients that others read, stay") {
  for (const Program& program : {make_program("%x", ""), make_program("%bent", ", %gradient")}) {
    Program after = program;
    CHECK(mask_before_pool(after) == 0);
    CHECK(after.nodes.size() == program.nodes.size());
  }
}

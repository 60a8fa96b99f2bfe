// Sizes measured on a few samples, predicted for many.
#include "lissome/train/budget/facts/size_prediction.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/ones.h>
#include <doctest/doctest.h>

using namespace lissome;

TEST_CASE("elements grow with the batch, and a node that sums over the batch is scaled like it") {
  const Program program = parse_program(R"(
    dim n in 1..64
    input %x: f32[n, 3]
    %e: f32[n, 3] = aten::exp(%x)
    %s: f32[3] = aten::sum.dim_IntList(%e, [0])
    return %e, %s
  )");
  const SizePrediction sizes(program, {at::ones({2, 3})}, {{8, 3}});
  const ValueId e = *program.find_value("e"), s = *program.find_value("s");
  CHECK(sizes.count_measured(e) == 6);
  CHECK(sizes.count_wanted(e) == 24);
  CHECK(sizes.count_wanted(s) == 3);
  CHECK(sizes.scale(program.nodes[0]) == doctest::Approx(4));
  CHECK(sizes.scale(program.nodes[1]) == doctest::Approx(4));
  CHECK(bind_sizes(program, {{8, 3}}).at("n") == 8);
}

// Batches for measuring: samples repeat, and halving ends at the examples.
#include "lissome/train/budget/measured_batch.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <doctest/doctest.h>

using namespace lissome;

TEST_CASE("samples repeat until there are enough, and weights follow") {
  const at::Tensor samples = at::arange(6).reshape({3, 2}), weight = at::ones({4});
  const std::vector<at::Tensor> inputs = repeat_samples({samples}, {{5, 2}}, {weight});
  REQUIRE(inputs.size() == 2);
  CHECK(inputs[0].sizes().vec() == Sizes{5, 2});
  CHECK(at::equal(inputs[0].narrow(0, 0, 3), samples));
  CHECK(at::equal(inputs[0].narrow(0, 3, 2), samples.narrow(0, 0, 2)));
  CHECK(inputs[1].is_alias_of(weight));
  CHECK(list_all_sizes({{5, 2}}, {weight}) == std::vector<Sizes>{{5, 2}, {4}});
}

TEST_CASE("named batches are halved down to the examples, constant sizes stay") {
  const Program program = parse_program(R"(
    dim n in 1..64
    input %x: f32[n, 2]
    input %k: f32[8]
    %e: f32[n, 2] = aten::exp(%x)
    %l: f32[8] = aten::exp(%k)
    return %e, %l
  )");
  const std::vector<at::Tensor> examples = {at::ones({3, 2}), at::ones({8})};
  std::vector<Sizes> sizes = {{10, 2}, {8}};
  CHECK(halve_batch(program, sizes, examples));
  CHECK(sizes == std::vector<Sizes>{{5, 2}, {8}});
  CHECK(halve_batch(program, sizes, examples));
  CHECK(sizes == std::vector<Sizes>{{3, 2}, {8}});
  CHECK_FALSE(halve_batch(program, sizes, examples));
}

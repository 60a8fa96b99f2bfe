// Convolutions' gradients in two nodes have the bits that they have in one.
#include "lissome/train/rewrite/split_gradients.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include "lissome/differentiate.h"
#include "lissome/train/step/training_step.h"
#include "tests/program_helpers.h"

using namespace lissome;

namespace {

constexpr const char* kConvolutions = R"(
  dim n in 2..8
  input %x: f32[n, 3, 12, 12]
  parameter @first: f32[8, 3, 3, 3]
  parameter @second: f32[6, 8, 3, 3]
  parameter @bias: f32[6]
  %y: f32[n, 8, 12, 12] = aten::convolution(%x, @first, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
  %bent: f32[n, 8, 12, 12] = aten::relu(%y)
  %z: f32[n, 6, 6, 6] = aten::convolution(%bent, @second, @bias, [2, 2], [1, 1], [1, 1], false, [0, 0], 1)
  %square: f32[n, 6, 6, 6] = aten::mul.Tensor(%z, %z)
  %loss: f32[] = aten::mean(%square)
  return %loss
)";

Program make_convolutions() {
  at::manual_seed(2);
  return parse_program(
      kConvolutions,
      {{"first", at::randn({8, 3, 3, 3})}, {"second", at::randn({6, 8, 3, 3})}, {"bias", at::randn({6})}});
}

}  // namespace

TEST_CASE("gradients of the weight come first, that of the data after it, bit by bit what they were") {
  const at::Tensor x = at::randn({4, 3, 12, 12});
  const Program whole = differentiate_program(make_convolutions(), {"first", "second", "bias"}, {x});
  Program split = whole;
  // The first convolution's data needs no gradient: there is one to split.
  CHECK(split_gradients(split) == 1);
  CHECK(split.nodes.size() == whole.nodes.size() + 1);
  CHECK(split_gradients(split) == 0);
  std::vector<std::vector<bool>> masks;
  for (const Node& node : split.nodes) {
    if (!node.is("aten::convolution_backward")) continue;
    masks.emplace_back();
    for (const Argument& item : node.argument("output_mask").list()) masks.back().push_back(*item.get<bool>());
  }
  CHECK(masks == std::vector<std::vector<bool>>{{false, true, true}, {true, false, false}, {false, true, false}});
  const std::vector<at::Tensor> wanted = interpret_tensors(whole, {x}), seen = interpret_tensors(split, {x});
  REQUIRE(seen.size() == wanted.size());
  for (size_t i = 0; i < seen.size(); ++i) CHECK(at::equal(seen[i], wanted[i]));
}

// The lowered step against interpret() on the same joint program: loss and every gradient.
#include "lissome/train/step/training_step.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

using namespace lissome;

namespace {

constexpr const char* kTransformer = R"(
  dim n in 2..64
  training
  input %ids: i64[n, 9]
  input %labels: i64[n]
  parameter @table: f32[30, 24]
  parameter @norm.weight: f32[24]
  parameter @norm.bias: f32[24]
  parameter @qkv.weight: f32[72, 24]
  parameter @qkv.bias: f32[72]
  parameter @up.weight: f32[70, 24]
  parameter @up.bias: f32[70]
  parameter @down.weight: f32[24, 70]
  parameter @down.bias: f32[24]
  parameter @head.weight: f32[7, 24]
  parameter @head.bias: f32[7]
  %x: f32[n, 9, 24] = aten::embedding(@table, %ids)
  %normed: f32[n, 9, 24] = aten::layer_norm(%x, [24], @norm.weight, @norm.bias, 1e-05)
  %all: f32[n, 9, 72] = aten::linear(%normed, @qkv.weight, @qkv.bias)
  %pieces: list = aten::split.Tensor(%all, 24, dim=-1)
  %q: f32[n, 9, 24] = lissome::getitem(%pieces, 0)
  %k: f32[n, 9, 24] = lissome::getitem(%pieces, 1)
  %v: f32[n, 9, 24] = lissome::getitem(%pieces, 2)
  %size: int = aten::sym_size.int(%ids, 0)
  %q4: f32[n, 9, 2, 12] = aten::reshape(%q, [%size, 9, 2, 12])
  %k4: f32[n, 9, 2, 12] = aten::reshape(%k, [%size, 9, 2, 12])
  %v4: f32[n, 9, 2, 12] = aten::reshape(%v, [%size, 9, 2, 12])
  %query: f32[n, 2, 9, 12] = aten::transpose.int(%q4, 1, 2)
  %key: f32[n, 2, 9, 12] = aten::transpose.int(%k4, 1, 2)
  %value: f32[n, 2, 9, 12] = aten::transpose.int(%v4, 1, 2)
  %heads: f32[n, 2, 9, 12] = aten::scaled_dot_product_attention(%query, %key, %value, is_causal=true)
  %beside: f32[n, 9, 2, 12] = aten::transpose.int(%heads, 1, 2)
  %joined: f32[n, 9, 24] = aten::reshape(%beside, [%size, 9, 24])
  %sum: f32[n, 9, 24] = aten::add.Tensor(%x, %joined)
  %up: f32[n, 9, 70] = aten::linear(%sum, @up.weight, @up.bias)
  %bent: f32[n, 9, 70] = aten::gelu(%up)
  %down: f32[n, 9, 24] = aten::linear(%bent, @down.weight, @down.bias)
  %out: f32[n, 9, 24] = aten::add.Tensor(%sum, %down)
  %first: f32[n, 24] = aten::select.int(%out, 1, 0)
  %scores: f32[n, 7] = aten::linear(%first, @head.weight, @head.bias)
  %loss: f32[] = aten::cross_entropy_loss(%scores, %labels)
  return %loss, %scores
)";

std::vector<std::pair<std::string, at::Tensor>> make_weights() {
  const auto weight = [](at::IntArrayRef sizes) { return at::randn(sizes).mul(0.3); };
  return {{"table", weight({30, 24})}, {"norm.weight", weight({24}).add(1)},
          {"norm.bias", weight({24})}, {"qkv.weight", weight({72, 24})},
          {"qkv.bias", weight({72})},  {"up.weight", weight({70, 24})},
          {"up.bias", weight({70})},   {"down.weight", weight({24, 70})},
          {"down.bias", weight({24})}, {"head.weight", weight({7, 24})},
          {"head.bias", weight({7})}};
}

std::vector<at::Tensor> make_batch(int64_t size) {
  return {at::randint(0, 30, {size, 9}, at::kLong), at::randint(0, 7, {size}, at::kLong)};
}

}  // namespace

TEST_CASE("a step of a transformer runs on our own kernels and gives the gradients that interpret gives") {
  const Program program = parse_program(kTransformer, make_weights());
  TrainingStep step(program, make_batch(3));
  CHECK_FALSE(step.session().plan().needs_reference());
  for (const int64_t size : {2, 20}) {
    const std::vector<at::Tensor> batch = make_batch(size);
    const std::vector<at::Tensor> outputs = step.run(batch);
    const auto wanted = interpret(step.program(), {batch[0], batch[1]});
    const auto agree = [](const at::Tensor& seen, const at::Tensor& right) {
      REQUIRE(seen.sizes() == right.sizes());
      CHECK(seen.sub(right).abs().max().item().toDouble() <= 2e-5 * right.abs().max().item().toDouble());
    };
    for (size_t i = 0; i < outputs.size(); ++i) agree(outputs[i], wanted[i].toTensor());
    for (size_t i = 0; i < step.names().size(); ++i) {
      CAPTURE(step.names()[i]);
      agree(step.gradients()[i], wanted[outputs.size() + i].toTensor());
    }
  }
}

TEST_CASE("a step that gives its loss alone has the same loss and gradients") {
  const Program program = parse_program(kTransformer, make_weights());
  TrainingStep all(program, make_batch(3)), loss(program, make_batch(3), {.outputs = false});
  const std::vector<at::Tensor> batch = make_batch(20);
  const std::vector<at::Tensor> wanted = all.run(batch), seen = loss.run(batch);
  REQUIRE(wanted.size() == 2);
  REQUIRE(seen.size() == 1);
  CHECK(at::equal(seen[0], wanted[0]));
  REQUIRE(loss.names() == all.names());
  for (size_t i = 0; i < all.names().size(); ++i) CHECK(at::equal(loss.gradients()[i], all.gradients()[i]));
}

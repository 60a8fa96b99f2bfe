// Convolutions of joined inputs in parts: the same results and gradients, and nothing joined is left.
#include "lissome/train/rewrite/split_joined.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include <algorithm>

#include "lissome/differentiate.h"
#include "tests/program_helpers.h"

using namespace lissome;

namespace {

// Two branches of 16 and 20 channels under one convolution; TAIL makes %z of %y and what else it likes.
std::string make_joined_text(const std::string& channels, const std::string& tail) {
  std::string text = R"(
  dim n in 2..8
  input %x: f32[n, 3, 12, 10]
  parameter @left: f32[16, 3, 3, 3]
  parameter @right: f32[CHANNELS, 3, 3, 3]
  parameter @joint: f32[6, SUM, 3, 3]
  parameter @bias: f32[6]
  %a: f32[n, 16, 12, 10] = aten::convolution(%x, @left, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
  %b: f32[n, CHANNELS, 12, 10] = aten::convolution(%x, @right, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
  %bent: f32[n, 16, 12, 10] = aten::relu(%a)
  %joined: f32[n, SUM, 12, 10] = aten::cat([%bent, %b], 1)
  %y: f32[n, 6, 6, 5] = aten::convolution(%joined, @joint, @bias, [2, 2], [1, 1], [1, 1], false, [0, 0], 1)
)" + tail + R"(
  %square: f32[n, 6, 6, 5] = aten::mul.Tensor(%z, %z)
  %loss: f32[] = aten::mean(%square)
  return %loss
)";
  const auto replace = [&](const std::string& word, const std::string& by) {
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word)) text.replace(at, word.size(), by);
  };
  replace("CHANNELS", channels);
  replace("SUM", std::to_string(16 + std::stoi(channels)));
  return text;
}

constexpr const char* kPlainTail = "  %z: f32[n, 6, 6, 5] = aten::relu(%y)";

Program differentiate(int64_t channels, const std::string& tail, const at::Tensor& x) {
  at::manual_seed(2);
  const Program forward =
      parse_program(make_joined_text(std::to_string(channels), tail), {{"left", at::randn({16, 3, 3, 3})},
                                                                       {"right", at::randn({channels, 3, 3, 3})},
                                                                       {"joint", at::randn({6, 16 + channels, 3, 3})},
                                                                       {"bias", at::randn({6})}});
  return differentiate_program(forward, {"left", "right", "joint", "bias"}, {x});
}

}  // namespace

TEST_CASE("a convolution of joined inputs runs part by part, and so do its gradients") {
  const at::Tensor x = at::randn({4, 3, 12, 10});
  const Program whole = differentiate(20, kPlainTail, x);
  Program split = whole;
  CHECK(split_joined(split) == 1);
  CHECK(split_joined(split) == 0);
  CHECK(count_ops(split, "lissome::conv_act") == 1);
  CHECK(count_ops(split, "aten::convolution") == count_ops(whole, "aten::convolution"));
  // Those of the weight first; the branch without an activation reads its gradient first.
  std::vector<int64_t> channels;
  for (const Node& node : split.nodes) {
    if (!node.is("aten::convolution_backward") || node.argument("stride") == Argument(ArgumentList{1, 1})) continue;
    const bool of_data = *node.argument("output_mask").list()[0].get<bool>();
    const int64_t part = *split.value(node.argument("input").value()).type.sizes[1].constant();
    channels.push_back(of_data ? part : -part);
  }
  CHECK(channels == std::vector<int64_t>{-16, -20, 16, 20});
  // What is joined now is the weight's gradient.
  CHECK(count_ops(split, "aten::cat") == 1);
  for (const Node& node : split.nodes) {
    if (node.is("aten::cat")) CHECK(split.value(node.result()).type.sizes[0] == Dimension(6));
    if (node.is("aten::slice.Tensor")) CHECK(split.value(node.result()).type.sizes[0] == Dimension(6));
  }
  const std::vector<at::Tensor> wanted = interpret_tensors(whole, {x}), seen = interpret_tensors(split, {x});
  REQUIRE(seen.size() == wanted.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    const double difference = seen[i].sub(wanted[i]).abs().max().item().toDouble();
    CHECK(difference <= 1e-6 * wanted[i].abs().max().item().toDouble());
  }
}

TEST_CASE("what is read elsewhere, and parts of few channels, stay joined") {
  const at::Tensor x = at::randn({4, 3, 12, 10});
  const std::string elsewhere = R"(
  %other: f32[n, 36, 12, 10] = aten::relu(%joined)
  %mean: f32[] = aten::mean(%other)
  %z: f32[n, 6, 6, 5] = aten::mul.Tensor(%y, %mean))";
  for (const auto& [channels, tail] : {std::pair<int64_t, std::string>{8, kPlainTail}, {20, elsewhere}}) {
    const Program whole = differentiate(channels, tail, x);
    Program split = whole;
    CHECK(split_joined(split) == 0);
    CHECK(same_program(split, whole));
  }
}

// The facts of a step against the plan that they are read off: what is alive at most, by the count of owners, is what
// the planner lays out.
#include "lissome/train/budget/cost.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include <set>

#include "lissome/differentiate.h"
#include "lissome/footprint.h"
#include "lissome/lower.h"
#include "lissome/pass.h"
#include "lissome/train/budget/facts/step_memory.h"
#include "lissome/train/rewrite/lift_weights.h"
#include "lissome/train/step/loss.h"

using namespace lissome;

namespace {

constexpr int64_t kCostBatch = 32, kLayers = 4;

// Attention, whose kernel writes rows that no value of the program names, and a loss whose gradient is one step.
std::string make_layers_text() {
  std::string text = "dim n in 2..64\ninput %x: f32[n, 16, 32]\nparameter @head: f32[300, 32]\n", x = "%x";
  for (int i = 0; i < kLayers; ++i)
    text += "parameter @qkv." + std::to_string(i) + ": f32[96, 32]\nparameter @out." + std::to_string(i) +
            ": f32[32, 32]\n";
  text += "%size: int = aten::sym_size.int(%x, 0)\n";
  for (int i = 0; i < kLayers; ++i) {
    const std::string at = std::to_string(i);
    text += "%all" + at + ": f32[n, 16, 96] = aten::linear(" + x + ", @qkv." + at + ")\n";
    text += "%pieces" + at + ": list = aten::split.Tensor(%all" + at + ", 32, dim=-1)\n";
    for (int k = 0; k < 3; ++k) {
      const std::string part = std::to_string(k) + "_" + at;
      text += "%part" + part + ": f32[n, 16, 32] = lissome::getitem(%pieces" + at + ", " + std::to_string(k) + ")\n";
      text += "%four" + part + ": f32[n, 16, 2, 16] = aten::reshape(%part" + part + ", [%size, 16, 2, 16])\n";
      text += "%head" + part + ": f32[n, 2, 16, 16] = aten::transpose.int(%four" + part + ", 1, 2)\n";
    }
    text += "%heads" + at + ": f32[n, 2, 16, 16] = aten::scaled_dot_product_attention(%head0_" + at + ", %head1_" + at +
            ", %head2_" + at + ")\n";
    text += "%beside" + at + ": f32[n, 16, 2, 16] = aten::transpose.int(%heads" + at + ", 1, 2)\n";
    text += "%joined" + at + ": f32[n, 16, 32] = aten::reshape(%beside" + at + ", [%size, 16, 32])\n";
    text += "%down" + at + ": f32[n, 16, 32] = aten::linear(%joined" + at + ", @out." + at + ")\n";
    text += "%sum" + at + ": f32[n, 16, 32] = aten::add.Tensor(" + x + ", %down" + at + ")\n";
    x = "%sum" + at;
  }
  return text + "%scores: f32[n, 16, 300] = aten::linear(" + x + ", @head)\nreturn %scores\n";
}

}  // namespace

TEST_CASE("what is alive at most in the model of a step is what its plan lays out, and libtorch holds nothing") {
  const Program model = parse_program(make_layers_text());
  Program with_loss = attach_loss(model, {}, Dtype::i64, {16});
  with_loss.outputs.resize(1);
  std::vector<std::string> names;
  for (const Weight& weight : with_loss.weights) names.push_back(weight.name);
  std::vector<at::Tensor> inputs = {at::randn({kCostBatch, 16, 32}), at::randint(0, 300, {kCostBatch, 16})};
  Lifted lifted =
      lift_weights(differentiate_program(with_loss, names, {inputs[0].narrow(0, 0, 3), inputs[1].narrow(0, 0, 3)}));
  run_pipeline(lifted.program);
  LowerOptions options;
  options.effort = Effort::fast;
  const Plan plan = lower_program(lifted.program, options);
  inputs.insert(inputs.end(), lifted.weights.begin(), lifted.weights.end());
  std::vector<Sizes> sizes;
  for (const at::Tensor& input : inputs) sizes.push_back(input.sizes().vec());
  const StepFacts facts = describe_step({&lifted.program, &plan, 2}, inputs, sizes);
  const auto peak = static_cast<double>(judge_schedule(facts.model, make_plain_schedule(facts.model), 0).peak);
  CHECK(peak == doctest::Approx(static_cast<double>(find_footprint(plan, sizes, 2).arena_bytes)).epsilon(0.03));
  CHECK(predict_memory(facts, make_plain_schedule(facts.model), plan, sizes, 2).held == 0);
}

TEST_CASE("what a node of the forward pass only names belongs to the forward pass, for it must have run") {
  Program program = parse_program(R"(
    input %x: f32[4, 8]
    %e: f32[4, 8] = aten::exp(%x)
    %z: f32[4, 8] = aten::zeros_like(%e)
    %y: f32[4, 8] = aten::add.Tensor(%x, %z)
    return %y, %e
  )");
  program.outputs[1].name = "gradient.x";
  LowerOptions options;
  options.effort = Effort::fast;
  const Plan plan = lower_program(program, options);
  const StepFacts facts = describe_step({&program, &plan, 1}, {at::randn({4, 8})}, {{4, 8}});
  REQUIRE(facts.model.nodes[1].names.size() == 1);
  for (const StepNode& node : facts.model.nodes) CHECK(node.forward);
}

TEST_CASE("a node reads what its kernels read: sizes alone, and masks that are made anew, keep nothing") {
  const Program program = parse_program(R"(
    dim n in 2..64
    input %images: f32[n, 8, 8, 8]
    input %w: f32[8, 8, 3, 3]
    input %scale: f32[8]
    input %shift: f32[8]
    input %mean: f32[8]
    input %var: f32[8]
    %x: f32[n, 8, 8, 8] = aten::exp(%images)
    %c: f32[n, 8, 8, 8] = aten::convolution(%x, %w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %b: f32[n, 8, 8, 8], %m: f32[8], %r: f32[8], %nm: f32[8], %nv: f32[8] =
      aten::_native_batch_norm_legit_functional(%c, %scale, %shift, %mean, %var, true, 0.1, 1e-05)
    %y: f32[n, 8, 8, 8] = aten::relu(%b)
    %p: f32[n, 8, 4, 4], %i: i64[n, 8, 4, 4] = aten::max_pool2d_with_indices(%y, [2, 2])
    %dy: f32[n, 8, 8, 8] = aten::max_pool2d_with_indices_backward(%p, %y, [2, 2], [2, 2], [0, 0], [1, 1], false, %i)
    %g: f32[n, 8, 8, 8] = aten::threshold_backward(%dy, %y, 0)
    %dc: f32[n, 8, 8, 8], %dscale: f32[8], %dshift: f32[8] =
      aten::native_batch_norm_backward(%g, %c, %scale, %mean, %var, %m, %r, true, 1e-05, [true, true, true])
    %dx: f32[n, 8, 8, 8], %none: none, %nothing: none =
      aten::convolution_backward(%dc, %x, %w, [0], [1, 1], [1, 1], [1, 1], false, [0, 0], 1, [true, false, false])
    return %dx, %dscale, %dshift
  )");
  LowerOptions options;
  options.effort = Effort::fast;
  const Plan plan = lower_program(program, options);
  const std::vector<at::Tensor> inputs = {at::randn({4, 8, 8, 8}), at::randn({8, 8, 3, 3}), at::randn({8}),
                                          at::randn({8}),          at::randn({8}),          at::randn({8}).abs()};
  std::vector<Sizes> sizes;
  for (const at::Tensor& input : inputs) sizes.push_back(input.sizes().vec());
  const StepFacts facts = describe_step({&program, &plan, 2}, inputs, sizes);
  const auto list = [&](const char* op, std::vector<int> StepNode::* values) {
    std::set<std::string> listed;
    for (size_t i = 0; i < program.nodes.size(); ++i) {
      if (!program.nodes[i].is(op)) continue;
      for (const int value : facts.model.nodes[i].*values)
        listed.insert(program.values[static_cast<size_t>(value)].name);
    }
    return listed;
  };
  using Names = std::set<std::string>;
  CHECK(list("aten::max_pool2d_with_indices_backward", &StepNode::reads) == Names{"p", "i"});
  CHECK(list("aten::max_pool2d_with_indices_backward", &StepNode::names) == Names{"y"});
  CHECK(list("aten::threshold_backward", &StepNode::reads) == Names{"dy"});
  CHECK(list("aten::native_batch_norm_backward", &StepNode::reads) == Names{"c", "dy", "g", "m", "r"});
  CHECK(list("aten::convolution_backward", &StepNode::reads) == Names{"dc"});
  CHECK(list("aten::convolution_backward", &StepNode::names) == Names{"x"});
  CHECK(check_schedule(facts.model, make_plain_schedule(facts.model)).empty());
}

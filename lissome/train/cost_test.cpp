// The facts of a step against the plan that they are read off: what is alive at most, by the count of owners, is what
// the planner lays out.
#include "lissome/train/cost.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include "lissome/differentiate.h"
#include "lissome/footprint.h"
#include "lissome/lower.h"
#include "lissome/pass.h"
#include "lissome/train/lift_weights.h"
#include "lissome/train/loss.h"

using namespace lissome;

namespace {

constexpr int64_t kBatch = 32, kLayers = 4;

// Attention, whose kernel writes rows that no value of the program names, and a loss whose gradient is one step.
std::string make_text() {
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
  const Program model = parse_program(make_text());
  Program with_loss = attach_loss(model, {}, Dtype::i64, {16});
  with_loss.outputs.resize(1);
  std::vector<std::string> names;
  for (const Weight& weight : with_loss.weights) names.push_back(weight.name);
  std::vector<at::Tensor> inputs = {at::randn({kBatch, 16, 32}), at::randint(0, 300, {kBatch, 16})};
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

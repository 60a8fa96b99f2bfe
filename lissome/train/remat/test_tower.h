// For tests of spills: a deep model whose activations stay idle for long, its data, and the inputs of its step's plan.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lissome/train/budget/try_budget.h"
#include "lissome/train/remat/test_waves.h"
#include "lissome/train/step/training_step.h"

namespace lissome {

inline constexpr int64_t kBatch = 8192, kWidth = 128;
inline constexpr int64_t kRoom = 2 << 20;  // above the tightest budget, so that the search for a schedule ends soon

// Six blocks of a residual stream, each with a norm whose result and view the backward pass reads.
inline Program make_tower() {
  std::string text = "dim n in 2..16384\ntraining\ninput %x: f32[n, 128]\n", x = "%x", body;
  for (int i = 0; i < 6; ++i) {
    const std::string at = std::to_string(i);
    text += "parameter @blocks." + at + ".up: f32[128, 128]\nparameter @blocks." + at + ".down: f32[128, 128]\n";
    body += "%norm" + at + ": f32[n, 128] = aten::layer_norm(" + x + ", [128])\n";
    body += "%up" + at + ": f32[n, 128] = aten::linear(%norm" + at + ", @blocks." + at + ".up)\n";
    body += "%bent" + at + ": f32[n, 128] = aten::tanh(%up" + at + ")\n";
    body += "%down" + at + ": f32[n, 128] = aten::linear(%bent" + at + ", @blocks." + at + ".down)\n";
    body += "%sum" + at + ": f32[n, 128] = aten::add.Tensor(" + x + ", %down" + at + ")\n";
    x = "%sum" + at;
  }
  text += "parameter @head: f32[5, 128]\n" + body + "%last: f32[n, 128] = aten::layer_norm(" + x + ", [128])\n";
  Program program = parse_program(text + "%scores: f32[n, 5] = aten::linear(%last, @head)\nreturn %scores\n");
  at::manual_seed(3);
  for (Weight& weight : program.weights) weight.tensor.uniform_(-0.15, 0.15);
  return program;
}

inline Dataset make_tower_data() { return make_waves(kBatch, kWidth); }

// The step's own plan and its inputs: a batch, then weights. Views point into memory that `program` and `batch` hold.
struct StepInputs {
  Plan plan;
  std::vector<Sizes> sizes;
  std::vector<TensorView> views;
};
inline StepInputs list_step_inputs(TrainingStep& step, const Program& program, const std::vector<at::Tensor>& batch) {
  std::vector<at::Tensor> inputs = batch;
  for (const std::string& name : step.names()) inputs.push_back(program.find_weight(name)->tensor);
  StepInputs listed{step.session().plan(), {}, {}};
  for (const at::Tensor& input : inputs) {
    listed.sizes.push_back(input.sizes().vec());
    listed.views.push_back(
        {dtype_of(input.scalar_type()), listed.sizes.back(), input.strides().vec(), input.data_ptr()});
  }
  REQUIRE(listed.plan.inputs.size() == inputs.size());
  return listed;
}

}  // namespace lissome

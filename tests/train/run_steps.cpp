// Training steps for test_precision.py, on batches that follow each other in IN.npz:
//   run_train steps MODEL.pt2 IN.npz OUT.npz KEY=VALUE...
// IN holds the model's inputs and labels by name. Keys: batch, steps, lr, momentum, precision (f32, bf16, f16), scale
// and interval (of the loss, f16). With given=1, IN holds weight.S.NAME too, which the weights become before step S,
// and the gradients are interpreted, node by node; else the weights follow SGD, and the training step runs as it does
// in training. OUT gets loss.S, scale.S, gradient.S.NAME, and weight.NAME at the end.
#include "tests/train/run_steps.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/scalar_tensor.h>

#include <cstring>

#include "lissome/base.h"
#include "lissome/differentiate.h"
#include "lissome/train.h"

namespace lissome {
namespace {

using Words = std::map<std::string, std::string>;
using Tensors = std::map<std::string, at::Tensor>;

at::Tensor to_tensor(const Array& array) {
  return at::from_blob(array.storage.get(), array.sizes, scalar_type_of(array.dtype)).clone();
}

struct Steps {
  Program program;  // with its loss, scaled where that is asked for
  Tensors data;
  std::optional<LossScaler> scaler;
  int64_t batch = 0;
};

Words read_words(const std::vector<std::string>& words) {
  Words read = {{"lr", "0.1"}, {"momentum", "0"}, {"precision", "f32"}, {"steps", "1"}, {"given", "0"}};
  for (size_t i = 3; i < words.size(); ++i) {
    const auto parts = split(words[i], '=');
    read[parts.at(0)] = parts.at(1);
  }
  return read;
}

Steps read_steps(const std::vector<std::string>& paths, const Words& words) {
  Steps steps;
  for (const NamedArray& item : load_arrays(paths.at(1))) steps.data[item.name] = to_tensor(item.array);
  steps.batch = std::stoll(words.at("batch"));
  const Program model = import_pt2(paths.at(0));
  const at::Tensor labels = steps.data.at("labels");
  const LossOptions loss = parse_loss("cross_entropy", model);
  steps.program = attach_loss(model, loss, dtype_of(labels.scalar_type()), labels.sizes().slice(1).vec());
  const Dtype precision = parse_dtype(words.at("precision")).value();
  if (precision != Dtype::f32) steps.program = apply_autocast(steps.program, precision);
  if (precision == Dtype::f16) {
    steps.scaler.emplace(
        LossScalerOptions{.initial = std::stod(words.at("scale")), .interval = std::stoll(words.at("interval"))});
    steps.program = attach_loss_scale(steps.program);
  }
  return steps;
}

std::vector<at::Tensor> take_inputs(const Steps& steps, int64_t first, int64_t count) {
  std::vector<at::Tensor> inputs;
  for (const ProgramInput& input : steps.program.inputs) {
    if (input.name == "loss_scale") {
      inputs.push_back(at::scalar_tensor(steps.scaler->scale(), at::kFloat));
    } else {
      inputs.push_back(steps.data.at(input.name).narrow(0, first, count));
    }
  }
  return inputs;
}

void note(std::vector<NamedArray>& results, const std::string& name, const at::Tensor& tensor) {
  const at::Tensor dense = tensor.detach().contiguous();
  results.push_back({name, make_array(dtype_of(dense.scalar_type()), dense.sizes().vec())});
  std::memcpy(results.back().array.storage.get(), dense.data_ptr(), dense.nbytes());
}

struct Gradients {
  at::Tensor loss;
  std::vector<at::Tensor> gradients;
};

// Weights as they are given for each step; the joint program by its meaning.
Gradients interpret_step(const Steps& steps, const Program& joined, int64_t step, size_t weights) {
  for (const Weight& weight : joined.weights) {
    const auto given = steps.data.find("weight." + std::to_string(step) + "." + weight.name);
    if (given != steps.data.end()) weight.tensor.detach().copy_(given->second);
  }
  InterpretOptions options;
  options.write_state = true;
  const std::vector<at::Tensor> inputs = take_inputs(steps, step * steps.batch, steps.batch);
  const auto outputs = interpret(joined, {inputs.begin(), inputs.end()}, options);
  Gradients result{outputs.front().toTensor(), {}};
  for (size_t i = outputs.size() - weights; i < outputs.size(); ++i) result.gradients.push_back(outputs[i].toTensor());
  return result;
}

}  // namespace

void run_steps(const std::vector<std::string>& paths) {
  const Words words = read_words(paths);
  Steps steps = read_steps(paths, words);
  TrainingStep step(steps.program, take_inputs(steps, 0, 3));
  std::vector<Parameter> parameters;
  for (const std::string& name : step.names())
    parameters.push_back({name, step.program().find_weight(name)->tensor, {}});
  Optimizer optimizer(parameters, Sgd{.lr = std::stod(words.at("lr")), .momentum = std::stod(words.at("momentum"))});
  const bool given = words.at("given") == "1";
  const Program joined =
      given ? differentiate_program(steps.program, step.names(), take_inputs(steps, 0, 3)) : Program();
  std::vector<NamedArray> results;
  for (int64_t i = 0; i < std::stoll(words.at("steps")); ++i) {
    const double scale = steps.scaler ? steps.scaler->scale() : 1;
    Gradients own;
    if (given) {
      own = interpret_step(steps, joined, i, parameters.size());
    } else {
      own.loss = step.run(take_inputs(steps, i * steps.batch, steps.batch)).front();
      own.gradients = step.gradients();
    }
    note(results, "loss." + std::to_string(i), own.loss.div(scale));
    note(results, "scale." + std::to_string(i), at::scalar_tensor(scale, at::kFloat));
    for (size_t k = 0; k < parameters.size(); ++k)
      note(results, "gradient." + std::to_string(i) + "." + parameters[k].name, own.gradients[k]);
    const StepResult done = optimizer.step(own.gradients, {.loss_scale = scale});
    if (steps.scaler) steps.scaler->update(done.skipped);
  }
  for (const Weight& weight : step.program().weights) {
    if (weight.role != WeightRole::constant) note(results, "weight." + weight.name, weight.tensor);
  }
  save_arrays(paths.at(2), results);
}

}  // namespace lissome

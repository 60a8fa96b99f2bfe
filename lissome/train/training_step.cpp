// See training_step.h.
#include "lissome/train/training_step.h"

#include <ATen/core/ivalue.h>

#include <unordered_set>

#include "lissome/differentiate.h"

namespace lissome {
namespace {

// Tied parameters are one: their gradients add up where the storage is first named.
std::vector<std::string> list_trainable(const Program& program) {
  std::vector<std::string> names;
  std::unordered_set<const void*> seen;
  for (const Weight& weight : program.weights) {
    if (weight.role != WeightRole::parameter || !weight.tensor.is_floating_point()) continue;
    if (seen.insert(weight.tensor.const_data_ptr()).second) names.push_back(weight.name);
  }
  if (names.empty()) throw_error(ErrorKind::invalid_input, "the model has no parameters to train");
  return names;
}

}  // namespace

TrainingStep::TrainingStep(const Program& program, const std::vector<at::Tensor>& examples)
    : names_(list_trainable(program)), program_(differentiate_program(program, names_, examples)) {}

std::vector<at::Tensor> TrainingStep::run(const std::vector<at::Tensor>& inputs) {
  InterpretOptions options;
  options.write_state = true;
  std::vector<at::Tensor> results;
  for (const c10::IValue& output : interpret(program_, {inputs.begin(), inputs.end()}, options)) {
    results.push_back(output.isTensor() ? output.toTensor() : at::Tensor());
  }
  const auto first_gradient = results.end() - std::ssize(names_);
  gradients_.assign(first_gradient, results.end());
  results.erase(first_gradient, results.end());
  return results;
}

}  // namespace lissome

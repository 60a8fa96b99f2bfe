// Imports a torch::nn module by recording it.
#include "lissome/import_module.h"

#include <torch/nn/module.h>

#include "lissome/program/import/import_recorded.h"

namespace lissome {
namespace {

// Parameters and buffers that are defined, in the module's order.
RecordedModule describe_module(const torch::nn::Module& module) {
  RecordedModule described;
  for (const auto& item : module.named_parameters()) {
    if (item.value().defined()) described.state.push_back({item.key(), item.value(), WeightRole::parameter});
  }
  for (const auto& item : module.named_buffers()) {
    if (item.value().defined()) described.state.push_back({item.key(), item.value(), WeightRole::buffer});
  }
  for (const auto& item : module.named_modules(std::string(), false)) {
    described.types.emplace(item.key(), item.value()->name());
  }
  described.training = module.is_training();
  return described;
}

}  // namespace

Program import_module(const torch::nn::Module& module, const std::vector<TracedInput>& inputs,
                      const ForwardMany& forward) {
  Program program = import_recorded(describe_module(module), inputs, forward);
  judge_program(program);
  return program;
}

Program import_module(const torch::nn::Module& module, const std::vector<TracedInput>& inputs,
                      const ForwardOne& forward) {
  return import_module(module, inputs, ForwardMany([&](const std::vector<at::Tensor>& tensors) {
                         return std::vector<at::Tensor>{forward(tensors)};
                       }));
}

}  // namespace lissome

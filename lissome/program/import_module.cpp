// Imports a torch::nn module by recording it.
#include "lissome/import_module.h"

#include "lissome/program/import_recorded.h"

namespace lissome {

Program import_module(const torch::nn::Module& module, const std::vector<TracedInput>& inputs,
                      const ForwardMany& forward) {
  return import_recorded(describe_module(module), inputs, forward);
}

Program import_module(const torch::nn::Module& module, const std::vector<TracedInput>& inputs,
                      const ForwardOne& forward) {
  return import_module(module, inputs, ForwardMany([&](const std::vector<at::Tensor>& tensors) {
                         return std::vector<at::Tensor>{forward(tensors)};
                       }));
}

}  // namespace lissome

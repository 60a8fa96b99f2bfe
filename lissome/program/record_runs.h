// Runs a module, or what else is recorded, a few times: on its examples, at other sizes of each named dimension, on
// other data, and leaves its state as it was.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lissome/import_module.h"
#include "lissome/program/record_calls.h"

namespace lissome {

struct ModuleRun {
  DimensionBindings sizes;
  std::vector<at::Tensor> inputs, outputs;    // as they were before and after
  std::map<std::string, at::Tensor> written;  // buffers and inputs that the run changed, by name, as it left them
  size_t known = 0;                           // tensors that were there before: the inputs, then the state
  Recording recording;                        // its first tensors are those
};

struct ModuleRuns {
  std::vector<ModuleRun> recorded;  // the first is the one on the examples
  std::vector<ModuleRun> held_out;  // at further sizes: without calls, to compare with
  at::Tensor generator;             // the random state before every run
};

struct StateTensor {
  std::string name;
  at::Tensor tensor;
  WeightRole role = WeightRole::parameter;
};

// What is recorded: code over inputs and state.
struct RecordedModule {
  std::vector<StateTensor> state;            // tied tensors under each of their names
  std::map<std::string, std::string> types;  // of the modules that own it, by path
  bool training = false;
  RecordingLevel level = RecordingLevel::outermost;
};

// Throws invalid_input when examples contradict each other, leave their ranges, or the module cannot run on them or at
// a size that a range allows; unsupported when an output cannot be recorded.
ModuleRuns run_module(const RecordedModule& module, const std::vector<TracedInput>& inputs, const ForwardMany& forward);

// Sizes, element type and elements are equal; NaN equals itself here.
bool same_contents(const at::Tensor& left, const at::Tensor& right);

// "batch = 2, steps = 7"
std::string print_sizes(const DimensionBindings& sizes);

}  // namespace lissome

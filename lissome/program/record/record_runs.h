// Runs a module, or what else is recorded, a few times: on its examples, at other sizes of each named dimension, on
// other data, and leaves its state as it was. Results are not kept, because those of a training step are as large as
// the model, in each run: a run is repeated when its results are wanted.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lissome/import_module.h"
#include "lissome/program/record/record_calls.h"

namespace lissome {

struct ModuleRun {
  DimensionBindings sizes;
  std::vector<at::Tensor> inputs;  // as they were before
  size_t known = 0;                // tensors that were there before: the inputs, then the state
  Recording recording;             // its first tensors are those
};

struct RunResults {
  std::vector<at::Tensor> outputs;
  std::map<std::string, at::Tensor> written;  // buffers and inputs that the run changed, by name, as it left them
};

struct ModuleRuns {
  std::vector<ModuleRun> recorded;  // the first is the one on the examples
  std::vector<ModuleRun> held_out;  // at further sizes, to compare with: neither run nor recorded yet
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

class StateKeeper;

// Holds a copy of the module's state, and of the random state, and restores both after each run, and at last. All three
// arguments must outlive it.
class ModuleRunner {
 public:
  // Throws invalid_input when examples contradict each other or leave their ranges.
  ModuleRunner(const RecordedModule& module, const std::vector<TracedInput>& inputs, const ForwardMany& forward);
  ~ModuleRunner();

  // Throws invalid_input when the module cannot run on its examples or at a size that a range allows; unsupported when
  // an output cannot be recorded.
  ModuleRuns record();

  // Does it once more. Throws invalid_input when the module cannot.
  RunResults repeat(const ModuleRun& run);

  // To be called after other code has run that changes the random state or the module's.
  void restore();

  // Gives parameters that have gradients other numbers near their own for all further runs, until this goes.
  void move_parameters();

 private:
  ModuleRun record_run(const DimensionBindings& sizes, const std::vector<at::Tensor>& examples);
  [[noreturn]] void refuse(const DimensionBindings& sizes, const std::string& reason) const;

  const RecordedModule& module_;
  const std::vector<TracedInput>& inputs_;
  const ForwardMany& forward_;
  DimensionBindings example_sizes_;
  std::unique_ptr<StateKeeper> keeper_;
};

// Sizes, element type and elements are equal; NaN equals itself here.
bool same_contents(const at::Tensor& left, const at::Tensor& right);

// "batch = 2, steps = 7"
std::string print_sizes(const DimensionBindings& sizes);

}  // namespace lissome

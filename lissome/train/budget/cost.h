// Cost facts of a training step: what its nodes take and what its values own, from its plan and from running it. They
// are measured on a small batch and told for a large one, because what a budget is for need not fit the machine.
#pragma once

#include <string>
#include <vector>

#include "lissome/program.h"
#include "lissome/runtime.h"
#include "lissome/train/budget/step_model.h"

namespace lissome {

// A step that lowering can take: weights and state are inputs (lift_weights), passes have run.
struct StepSource {
  const Program* program = nullptr;
  const Plan* plan = nullptr;  // of this program, as it stands
  int threads = 0;
  std::string offload_folder;  // of a plan that stores values in a file
};

struct StepFacts {
  StepModel model;         // at the sizes asked for
  std::vector<bool> held;  // by value: libtorch holds its memory, else the arena
  // By node: how many times as long it takes at those sizes as at the measured ones. Empty where nothing was measured.
  std::vector<double> scales;
};

// Sizes of the named dimensions where the program's inputs have these sizes.
DimensionBindings bind_sizes(const Program& program, const std::vector<Sizes>& sizes);

// What the step is without measuring: times and what libtorch needs inside a node are 0. `examples` are inputs of the
// program, weights and state included, on which it is interpreted once; `sizes` as below.
StepFacts describe_step(const StepSource& source, const std::vector<at::Tensor>& examples,
                        const std::vector<Sizes>& sizes);
// `measured` are inputs of the program, weights and state included, that the step runs on some times; `sizes` those of
// the inputs that the facts are wanted for. Only named dimensions may differ. What libtorch needs for a while inside a
// node, and all times, are scaled by the elements that the node makes.
StepFacts measure_step(const StepSource& source, const std::vector<at::Tensor>& measured,
                       const std::vector<Sizes>& sizes);

// Seconds on these inputs, weights and state included: medians over some runs.
struct NodeSeconds {
  std::vector<double> nodes;
  double moving = 0;  // values to a file and back
};
NodeSeconds measure_nodes(const StepSource& source, const std::vector<at::Tensor>& inputs);

// The most that the arena and libtorch hold at once when `plan`, of the program that `schedule` makes of the step,
// runs.
struct StepMemory {
  int64_t arena = 0, held = 0;
  int64_t total() const { return arena + held; }
};
StepMemory predict_memory(const StepFacts& facts, const RunOrder& schedule, const Plan& plan,
                          const std::vector<Sizes>& sizes, int threads);

// The same, measured while `work` runs the session: libtorch's share is what its allocator gave this thread at most.
StepMemory measure_memory(const Session& session, const std::function<void()>& work);

}  // namespace lissome

// Cost facts of a training step: the time of its nodes and the memory of its values, from its plan and from runs. They
// are measured on a small batch and predicted for a large one, because a step that needs a budget may not fit the
// machine.
#pragma once

#include <string>
#include <vector>

#include "lissome/program.h"
#include "lissome/runtime.h"
#include "lissome/train/budget/step_model.h"

namespace lissome {

// A step that can be lowered: weights and state are inputs (lift_weights), and passes have run.
struct StepSource {
  const Program* program = nullptr;
  const Plan* plan = nullptr;  // of this program, unchanged
  int threads = 0;
  std::string offload_folder;  // for a plan that keeps values in a file
};

struct StepFacts {
  StepModel model;         // at the sizes asked for
  std::vector<bool> held;  // by value: libtorch holds its memory, not the arena
  // By node: its predicted time at those sizes over its time at the measured sizes. Empty if nothing was measured.
  std::vector<double> scales;
};

// The sizes of the named dimensions when the program's inputs have these sizes.
DimensionBindings bind_sizes(const Program& program, const std::vector<Sizes>& sizes);

// Describes the step without measuring: times and libtorch's memory inside a node are 0. `examples` are inputs of the
// program, weights and state included, on which it is interpreted once; `sizes` as for measure_step().
StepFacts describe_step(const StepSource& source, const std::vector<at::Tensor>& examples,
                        const std::vector<Sizes>& sizes);
// Runs the step some times on `measured`, inputs of the program with weights and state included. Predicts the facts for
// inputs of `sizes`; only named dimensions may differ. All times, and libtorch's temporary memory inside a node, are
// scaled by the number of elements that the node computes.
StepFacts measure_step(const StepSource& source, const std::vector<at::Tensor>& measured,
                       const std::vector<Sizes>& sizes);

// Medians of seconds over some runs.
struct NodeSeconds {
  std::vector<double> nodes;
  double moving = 0;  // seconds of moving values to a file and back
};
// `inputs`: weights and state included.
NodeSeconds measure_nodes(const StepSource& source, const std::vector<at::Tensor>& inputs);

// The most bytes that the arena and libtorch hold at once while a step runs.
struct StepMemory {
  int64_t arena = 0, held = 0;
  int64_t total() const { return arena + held; }
};
// `plan` is the plan of the step after apply_schedule().
StepMemory predict_memory(const StepFacts& facts, const RunOrder& schedule, const Plan& plan,
                          const std::vector<Sizes>& sizes, int threads);

// Measures the memory while `work` runs the session. libtorch's share is the most that its allocator gave this thread.
StepMemory measure_memory(const Session& session, const std::function<void()>& work);

}  // namespace lissome

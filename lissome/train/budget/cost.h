// Cost facts of a training step: the time of its nodes and the memory of its values, from its plan and from runs. They
// are measured on a small batch and predicted for a large one, because a step that needs a budget may not fit the
// machine. The parts stand in facts/.
#pragma once

#include <vector>

#include "lissome/train/budget/facts/step_source.h"
#include "lissome/train/budget/step_model.h"

namespace lissome {

struct StepFacts {
  StepModel model;         // at the sizes asked for
  std::vector<bool> held;  // by value: libtorch holds its memory, not the arena
  // By node: what libtorch takes while it runs, beside its results; of a step of ours for copies that it reads. Empty
  // if nothing was measured.
  std::vector<int64_t> held_scratch;
  // By node: its predicted time at those sizes over its time at the measured sizes. Empty if nothing was measured.
  std::vector<double> scales;
};

// Describes the step without measuring: times and libtorch's memory inside a node are 0. `examples` are inputs of the
// program, weights and state included, on which it is interpreted once; `sizes` as for measure_step(). Throws the
// errors of bind_program() and find_footprint().
StepFacts describe_step(const StepSource& source, const std::vector<at::Tensor>& examples,
                        const std::vector<Sizes>& sizes);
// Runs the step some times on `measured`, inputs of the program with weights and state included. Predicts the facts for
// inputs of `sizes`; only named dimensions may differ. All times, and libtorch's temporary memory inside a node, are
// scaled by the number of elements that the node computes. Throws as describe_step(), and the errors of a session.
StepFacts measure_step(const StepSource& source, const std::vector<at::Tensor>& measured,
                       const std::vector<Sizes>& sizes);

}  // namespace lissome

// One step of training: loss, outputs and gradients of a batch. The joint program of forward and backward is lowered
// like any other: weights and state are inputs of it, because they change from step to step.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lissome/pass.h"
#include "lissome/program.h"
#include "lissome/runtime.h"
#include "lissome/train/budget/budget.h"

namespace lissome {

struct TrainingStepOptions {
  int threads = 0;                   // 0: one for each core that it may use
  std::optional<StepBudget> budget;  // recompute to stay inside it; none: everything is kept
  bool outputs = true;  // beside the loss: training reads none, and each stays in memory to the end of a step
  // Each gradient is given away as soon as it is complete and the step reads its weight no more, so that the memory of
  // gradients is used again inside the step. None: they stay until the next run.
  bool give_gradients = false;
  std::vector<std::string> disabled_passes;  // names of training passes to leave out; see training_passes.h
};

// Gets the gradient of the weight `index`, counted as in TrainingStep::names(), and may change the weight. The memory
// of the gradient is used again once the call returns.
using GradientTaker = std::function<void(size_t index, const at::Tensor& gradient)>;

class TrainingStep {
 public:
  // `program` gives its loss first. Its floating parameters train, each storage once; they, and the state that the
  // program writes, must be dense in row order. `examples` (small ones are best) tell the sizes that named dimensions
  // cannot. Throws what differentiate_program() throws, and plan_within_budget() where there is a budget.
  TrainingStep(const Program& program, const std::vector<at::Tensor>& examples,
               const TrainingStepOptions& options = {});

  // Forward and backward with the weights as they are now; writes the program's state (running statistics). Dropout
  // follows a seed that each run draws from the generator of the CPU. Returns the loss and, where they are wanted, the
  // program's other outputs; the next run may overwrite them. `taker` is for steps that give their gradients away;
  // null: nobody wants them.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs, const StepSink* sink = nullptr,
                              const GradientTaker* taker = nullptr);

  const std::vector<std::string>& names() const { return names_; }
  // Of the last run, in the order of the names; undefined where the loss does not depend on the weight, and where they
  // were given away.
  const std::vector<at::Tensor>& gradients() const { return gradients_; }
  // What each training pass changed when the step was made.
  const std::vector<PassResult>& passes() const { return passes_; }
  // The program with its gradients as further outputs.
  const Program& program() const { return program_; }
  Session& session() { return *session_; }
  // Gives the results and gradients of the last run back, and the memory it took.
  void release_memory();
  // What a run with inputs of these sizes holds, node by node.
  MemoryTimeline trace_arena(const std::vector<at::Tensor>& inputs) const;
  // Whether the step was planned for weights that lie in a file; it may run before they do.
  bool streams_weights() const { return streamed_.at_once > 0; }
  // What was promised when the step was planned; nothing without a budget.
  const std::optional<StepForecast>& forecast() const { return forecast_; }

 private:
  void let_gradients_leave(Plan& plan) const;
  void stream_weights();
  void forget_results();
  void run_into_kept(const std::vector<TensorView>& views, const StepSink* sink, const OutputTaker* taker);

  std::vector<std::string> names_;
  std::vector<PassResult> passes_;
  Program program_;
  std::vector<at::Tensor> lent_, written_;  // weights and more that each run reads; that it ends with writing
  std::optional<at::Tensor> seed_;          // of dropout
  std::optional<StepForecast> forecast_;
  StreamedWeights streamed_;
  std::vector<size_t> streaming_;  // inputs of the plan
  std::unique_ptr<Session> session_;
  std::vector<Sizes> sizes_;  // of the last inputs, for which these lie ready:
  std::vector<Array> outputs_;
  std::vector<at::Tensor> results_, gradients_;
};

}  // namespace lissome

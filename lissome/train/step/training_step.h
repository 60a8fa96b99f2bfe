// One step of training: loss, outputs and gradients of a batch. The joint program of forward and backward is lowered
// like any other. Weights and state are its inputs, because they change from step to step.
#pragma once

#include <cstdint>
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

// When gradients leave a step. Those that leave inside are given away, and their memory is reused.
enum class GradientsLeave : uint8_t {
  after_step,  // they stay until the next run
  when_complete,
  for_update  // when complete, and the step no longer reads the weight
};

struct TrainingStepOptions {
  int threads = 0;                   // 0: one for each core that the process may use
  std::optional<StepBudget> budget;  // recompute to stay inside it; empty: everything is kept
  bool outputs = true;               // give outputs beside the loss; each stays in memory to the end of a step
  GradientsLeave gradients_leave = GradientsLeave::after_step;
  bool synchronize_batch_norm = false;       // over the ranks of the RankLink that a run goes through
  std::vector<std::string> disabled_passes;  // names of training passes to leave out; see training_passes.h
};

// Takes the gradient of the weight `index`, counted as in TrainingStep::names(), and with GradientsLeave::for_update
// may change the weight. The memory of the gradient is reused after the call.
using GradientTaker = std::function<void(size_t index, const at::Tensor& gradient)>;

class TrainingStep {
 public:
  // The first output of `program` is its loss. Its floating parameters train, each storage once. They, and the state
  // that the program writes, must be dense and row-major. `examples`, best small ones, give the sizes that named
  // dimensions do not determine. Throws the errors of differentiate_program(), and with a budget those of
  // plan_within_budget().
  TrainingStep(const Program& program, const std::vector<at::Tensor>& examples,
               const TrainingStepOptions& options = {});

  // Runs forward and backward with the current weights and writes the program's state (running statistics). Each run
  // draws the seed of dropout from the CPU generator. Returns the loss and, with TrainingStepOptions::outputs, the
  // program's other outputs; the next run may overwrite them. `taker`: for steps that give their gradients away; null:
  // the gradients are not needed.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs, const StepSink* sink = nullptr,
                              const GradientTaker* taker = nullptr);

  const std::vector<std::string>& names() const { return names_; }
  // Gradients of the last run, in the order of the names. Undefined where the loss does not depend on the weight and
  // for gradients that were given away.
  const std::vector<at::Tensor>& gradients() const { return gradients_; }
  // Gradients by their place among names(), in the order in which a run completes them; those that do not leave it
  // last.
  std::vector<size_t> list_completion() const;
  // The changes of each training pass when the step was made.
  const std::vector<PassResult>& passes() const { return passes_; }
  // The program with its gradients as further outputs.
  const Program& program() const { return program_; }
  Session& session() { return *session_; }
  // Frees the results and gradients of the last run, and the memory of the session.
  void release_memory();
  // The memory of a run with inputs of these sizes, node by node.
  MemoryTimeline trace_arena(const std::vector<at::Tensor>& inputs) const;
  // Whether the step was planned for weights in a file. It may run before they are moved there.
  bool streams_weights() const { return streamed_.at_once > 0; }
  // The forecast from when the step was planned; empty without a budget.
  const std::optional<StepForecast>& forecast() const { return forecast_; }

 private:
  void let_gradients_leave(Plan& plan, GradientsLeave when) const;
  void stream_weights();
  void forget_results();
  void run_into_kept(const std::vector<TensorView>& views, const StepSink* sink, const OutputTaker* taker);

  std::vector<std::string> names_;
  std::vector<PassResult> passes_;
  Program program_;
  std::vector<at::Tensor> lent_,
      written_;                     // weights and other tensors that each run reads; tensors that it writes at its end
  std::optional<at::Tensor> seed_;  // of dropout
  std::optional<StepForecast> forecast_;
  StreamedWeights streamed_;
  std::vector<size_t> streaming_;  // inputs of the plan that stream
  std::unique_ptr<Session> session_;
  std::vector<Sizes> sizes_;  // sizes of the last inputs, for which the following are ready
  std::vector<Array> outputs_;
  std::vector<at::Tensor> results_, gradients_;
};

}  // namespace lissome

// One step of training: loss, outputs and gradients of a batch. Weights are the program's own and change beneath it.
#pragma once

#include <string>
#include <vector>

#include "lissome/program.h"

namespace lissome {

class TrainingStep {
 public:
  // `program` gives its loss first. Its floating parameters train, each storage once; `examples` (small ones are best)
  // tell the sizes that named dimensions cannot. Throws what differentiate_program() throws.
  TrainingStep(const Program& program, const std::vector<at::Tensor>& examples);

  // Forward and backward; writes the program's state (running statistics). Returns the program's outputs.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs);

  const std::vector<std::string>& names() const { return names_; }
  // Of the last run, in the order of the names; undefined where the loss does not depend on the weight.
  const std::vector<at::Tensor>& gradients() const { return gradients_; }
  // The program with its gradients as further outputs.
  const Program& program() const { return program_; }

 private:
  std::vector<std::string> names_;
  Program program_;
  std::vector<at::Tensor> gradients_;
};

}  // namespace lissome

// Measures the kernels that accept a node, each in a plan of its own that holds this node alone, on real sizes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lissome/lower/candidate/candidate.h"

namespace lissome {

struct CandidateTime {
  double nanoseconds = 0;  // median; 0 when it failed
  std::string failure;
};

// Tensors and views of their memory.
struct TimingInputs {
  std::vector<at::Tensor> tensors;
  std::vector<TensorView> views;
};

class CandidateTimer {
 public:
  CandidateTimer(const Program& program, const LowerOptions& options);

  // By kernel. Runs are interleaved.
  std::map<std::string, CandidateTime> measure(const Node& node, const std::vector<std::string>& kernels) const;
  // Op, literals, dtypes and sizes: nodes of one description take equal time.
  std::string describe(const Node& node) const;
  // What the choice for the whole program depends on, besides its text.
  std::string describe_choice() const;
  // For the whole program: the examples, or made up where there are none.
  TimingInputs make_inputs() const;

 private:
  Program extract(const Node& node) const;

  const Program& program_;
  const LowerOptions& options_;
  DimensionBindings dimensions_;
};

}  // namespace lissome

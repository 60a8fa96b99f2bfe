// Measures the kernels that accept a node, each in a plan of its own that holds this node alone, on real sizes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lissome/lower/candidate.h"

namespace lissome {

struct CandidateTime {
  double nanoseconds = 0;  // median; 0 when it failed
  std::string failure;
};

class CandidateTimer {
 public:
  CandidateTimer(const Program& program, const LowerOptions& options);

  // One result a candidate, in their order; a null candidate is the reference. Runs are interleaved. Equal nodes are
  // measured once.
  const std::vector<CandidateTime>& measure(const Node& node, const std::vector<const Candidate*>& candidates);

 private:
  Program extract(const Node& node) const;

  const Program& program_;
  const LowerOptions& options_;
  DimensionBindings dimensions_;
  std::map<std::string, std::vector<CandidateTime>> known_;
};

}  // namespace lissome

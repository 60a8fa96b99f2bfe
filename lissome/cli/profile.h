// One model measured node by node: what `profile` prints and `--explain` explains.
#pragma once

#include <string>
#include <vector>

#include "lissome/measure.h"
#include "lissome/runtime.h"

namespace lissome {

struct NodeTime {
  PlanOrigin origin;
  std::string kernel, isa;
  int parts = 1;
  std::vector<double> seconds;  // by run
  int64_t bytes = 0;
  double products = 0;
  Dtype multiplied = Dtype::f32;
  double typical = 0;  // seconds
};

struct Profile {
  std::vector<NodeTime> nodes;        // the last one is what a call does beside its nodes
  double whole = 0, with_clocks = 0;  // seconds of one call: as users run it, and while each step is timed
  std::vector<SpanRecord> spans;      // of the last run
};

Profile measure_nodes(Session& session, const std::vector<TensorView>& inputs, int warmup, int runs);

// By node: the kernel, its time, how near that is to what the machine can do and what holds it back, and why the other
// kernels were refused or lost.
Table explain_nodes(const Plan& plan, const Profile& profile, const MachinePeaks& peaks, int64_t working_set);

}  // namespace lissome

// Measures a model node by node, for `profile` and its `--explain`.
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
  std::vector<double> seconds;  // of each run
  int64_t bytes = 0;
  double products = 0;
  Dtype multiplied = Dtype::f32;
  double typical = 0;  // seconds of a typical run
};

struct Profile {
  std::vector<NodeTime> nodes;        // the last entry is the time of a call outside of its nodes
  double whole = 0, with_clocks = 0;  // seconds of one call, without and with timing each step
  std::vector<SpanRecord> spans;      // of the last run
};

Profile measure_nodes(Session& session, const std::vector<TensorView>& inputs, int warmup, int runs);

// The peaks of so many threads, measured again where the profile exceeds them.
MachinePeaks find_peaks_of(const Profile& profile, int threads);

// For each node: the kernel, its time, its share of the machine's limit and the limiting resource, and why other
// kernels were refused or slower.
Table explain_nodes(const Plan& plan, const Profile& profile, const MachinePeaks& peaks, int64_t working_set);

}  // namespace lissome

// A session that sees few sizes of one dimension: inputs are padded up to the next bucket, outputs cut back. Spares the
// plan and the memory of every single size. Only right where the model takes no notice of what is padded (it masks, or
// computes each place alone), which is therefore proved on a sample before anything is answered.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "lissome/runtime/session/session.h"

namespace lissome {

struct BucketOptions {
  std::string dimension;               // of the plan by name, or "ids.1": dimension 1 of input ids
  std::vector<int64_t> sizes;          // what it is padded to; more than the largest runs as it is
  std::map<std::string, double> pads;  // by input: what fills the new places of every input that has the dimension
  // What an output may differ by, relative to its largest element. Integers and flags must be equal.
  double most_difference = 1e-3;
};

// Of two answers, relative to the largest finite element of `wanted`; infinite when something that must be equal is
// not.
double find_difference(const Array& wanted, const Array& seen);

class BucketedSession {
 public:
  // Runs the sample (inputs in the plan's order, fewer of the dimension than the largest bucket) as it is and in every
  // bucket above it. Throws usage for options that do not fit the plan, and unsupported, with the figure, when an
  // answer differs, when a size of an input or output is computed from the dimension, or when the model keeps state.
  BucketedSession(Session session, BucketOptions options, std::span<const TensorView> sample);

  // As Session::run.
  std::vector<Array> run(std::span<const TensorView> inputs);

  const Session& session() const { return session_; }
  double seen_difference() const { return seen_difference_; }  // the largest of the sample

 private:
  void check_options();
  void check_sample(std::span<const TensorView> sample);
  int64_t find_size(std::span<const TensorView> inputs) const;
  std::vector<Array> run_in(int64_t bucket, int64_t size, std::span<const TensorView> inputs);

  Session session_;
  BucketOptions options_;
  std::vector<std::vector<bool>> input_axes_, output_axes_;  // which are the dimension
  std::vector<double> pads_;                                 // by input
  double seen_difference_ = 0;
};

}  // namespace lissome

// State of a model while one update runs it several times, on parts of its batch: running statistics of batch norm are
// written once, from the statistics of the parts pooled, and counters count one.
#pragma once

#include <vector>

#include "lissome/program.h"

namespace lissome {

// For each batch norm that trains, with n_i numbers a channel in part i, their mean m_i and unbiased variance v_i:
//   N = sum n_i,  m = sum n_i m_i / N,  v = (sum (n_i - 1) v_i + sum n_i (m_i - m)^2) / (N - 1)
// what a look at all numbers at once would give, and then running <- (1 - momentum) running + momentum (m, v). The
// second sum is what averaging variances would lose. Other floating state follows the parts one after the other.
class PooledStatistics {
 public:
  // Of the state that `program` writes, in its own tensors.
  explicit PooledStatistics(const Program& program);

  bool has_batch_norm() const { return !norms_.empty(); }
  // In this order: begin, for each part prepare, the run itself, take (inputs of the run: sizes count), at the end
  // finish; or restore at any time after begin: everything is as it was then.
  void begin();
  void prepare();
  void take(const std::vector<at::Tensor>& inputs);
  void finish();
  void restore();

 private:
  struct Kept {
    at::Tensor tensor, before;
  };
  struct Norm {
    Kept mean, variance;
    double momentum = 0;
    ValueId input = ValueId::none;
    double count = 0;                    // N so far
    at::Tensor pooled_mean, pooled_sum;  // f64: m, and the sums of v before their division
  };
  void pool(Norm& norm, double count) const;

  const Program& program_;
  std::vector<Norm> norms_;
  std::vector<Kept> counters_, others_;
};

}  // namespace lissome

// The state of a model while one update runs it several times, on parts of its batch: running statistics of batch norm
// are written once, from the pooled statistics of the parts, and counters count once.
#pragma once

#include <vector>

#include "lissome/program.h"

namespace lissome {

// For each batch norm that trains, with n_i numbers a channel in part i, their mean m_i and unbiased variance v_i:
//   N = sum n_i,  m = sum n_i m_i / N,  v = (sum (n_i - 1) v_i + sum n_i (m_i - m)^2) / (N - 1)
// which are the statistics of all numbers at once, and then running <- (1 - momentum) running + momentum (m, v). An
// average of variances would lose the second sum. Other floating state is written by each part in turn.
class PooledStatistics {
 public:
  // Pools the state that `program` writes, in the program's own tensors.
  explicit PooledStatistics(const Program& program);

  bool has_batch_norm() const { return !norms_.empty(); }
  // To be called in this order: begin; for each part prepare, the run itself, and take with the inputs of the run, of
  // which only sizes count; at the end finish. restore() may be called at any time after begin and undoes everything
  // since.
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
    at::Tensor pooled_mean, pooled_sum;  // f64: m, and the sums of v before the division
  };
  void pool(Norm& norm, double count) const;

  const Program& program_;
  std::vector<Norm> norms_;
  std::vector<Kept> counters_, others_;
};

}  // namespace lissome

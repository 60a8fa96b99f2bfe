// Sums gradients over the ranks of a group in buckets, while the step that computes them goes on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lissome/measure.h"
#include "lissome/train/loop/learn/gradient_buckets.h"
#include "lissome/train/loop/learn/gradient_exchange.h"

namespace lissome {

class EarlyGradients : public GradientExchange {
 public:
  // `order`: parameters in the order in which a step completes their gradients, the same on all ranks. Gradients
  // travel, and are summed, in `dtype`. `bucket`: bytes of a bucket, of which the first is smaller; empty: cut by times
  // that the first steps take.
  EarlyGradients(Group& group, Dtype dtype, std::optional<int64_t> bucket, const NamedTensors& parameters,
                 std::vector<size_t> order, const std::vector<at::Tensor>& state);

  void begin(const UpdatePart& part, int64_t step, std::optional<double> momentum) override;
  void take(size_t parameter, const at::Tensor& gradient) override;
  UpdatePart finish(const std::vector<at::Tensor>& gradients, const UpdatePart& part) override;
  std::string take_note() override { return std::exchange(note_, {}); }
  NamedTensors collect(int64_t step) const override;
  void restore(const NamedTensors& state) override;

 private:
  // The step that runs.
  struct Running {
    int64_t step = 1;
    double factor = 0;  // of this rank's gradients; 0: they count as 0
    double weight = 0;  // of all ranks
    Stopwatch watch;
    std::vector<bool> taken;
  };
  void fill_view(size_t parameter, const at::Tensor& gradient);
  void cut_by_measurement();

  const Dtype dtype_;
  const std::vector<size_t> order_;  // parameters by position
  std::vector<size_t> position_;     // of each parameter
  std::vector<at::Tensor> views_;    // of parameters
  std::optional<GradientBuckets> buckets_;
  const bool measures_;        // cuts by times
  int64_t steps_to_measure_;   // 0: the cut is made
  std::vector<double> ready_;  // seconds after the begin of a step, by position
  Running running_;
  std::string note_;
};

}  // namespace lissome

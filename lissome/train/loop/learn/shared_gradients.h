// Sums gradients over the ranks of a group when all are there, as they are or compressed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lissome/base.h"
#include "lissome/train/loop/learn/gradient_compressor.h"
#include "lissome/train/loop/learn/gradient_exchange.h"

namespace lissome {

class SharedGradients : public GradientExchange {
 public:
  // `parameters`: gradients have their sizes; in an order that is the same on all ranks. `compressor` may be null:
  // gradients then travel, and are summed, as `compression` says.
  SharedGradients(Group& group, GradientCompression compression, std::unique_ptr<GradientCompressor> compressor,
                  const NamedTensors& parameters, const std::vector<at::Tensor>& state);

  void begin(const UpdatePart&, int64_t step, std::optional<double> momentum) override {
    step_ = step, momentum_ = momentum;
  }
  void take(size_t, const at::Tensor&) override { LISSOME_CHECK(false, "gradients stay to the end of a step"); }
  UpdatePart finish(const std::vector<at::Tensor>& gradients, const UpdatePart& part) override;
  void adjust(StepOptions& options) const override;
  std::string describe(int64_t steps) const override;
  NamedTensors collect(int64_t step) const override;
  void restore(const NamedTensors& state) override;
  bool keeps_gradients() const override { return compressor_ != nullptr; }

 private:
  // Sums `flat`, which holds every number of what it stands for.
  void sum_flat(const at::Tensor& flat, const std::string& what);
  void sum_gradients(const RankShare& share, bool finite);
  void fill_views(const std::vector<at::Tensor>& gradients);

  const GradientCompression compression_;
  const std::unique_ptr<GradientCompressor> compressor_;
  int64_t step_ = 1;
  std::optional<double> momentum_;
  at::Tensor flat_;                // f32: gradients of all parameters, those that the compressor takes first
  at::Tensor dense_;               // the others, a part of flat_
  std::vector<at::Tensor> views_;  // of flat_, in the order of parameters
};

}  // namespace lissome

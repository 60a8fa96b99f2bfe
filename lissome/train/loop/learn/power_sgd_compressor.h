// Products of two narrow matrices in place of the gradients of matrices; see PowerSgdGradients.
#pragma once

#include "lissome/train/loop/learn/gradient_compressor.h"

namespace lissome {

class PowerSgdCompressor : public GradientCompressor {
 public:
  // Throws usage, see make_compressor().
  PowerSgdCompressor(const PowerSgdGradients& options, const NamedTensors& parameters);

  int64_t dense_steps() const override { return dense_steps_; }
  bool takes(size_t parameter) const override { return matrices_[parameter].error.defined(); }
  void prepare(const std::vector<at::Tensor>&, const RankShare&) override {}
  void sum(Group& group, const std::vector<at::Tensor>& gradients, const std::string& what) override;
  void adjust(StepOptions&) const override {}
  int64_t count_bytes() const override {
    return (left_.numel() + right_.numel()) * static_cast<int64_t>(sizeof(float));
  }
  NamedTensors list_own_state() const override;
  NamedTensors list_common_state() const override;

 private:
  struct Matrix {
    std::string name;
    at::Tensor error;        // [rows, columns]: of the gradient, what was not sent; undefined: every number travels
    at::Tensor left, right;  // [rows, rank], [columns, rank]: parts of left_ and right_
  };

  const int64_t dense_steps_;
  std::vector<Matrix> matrices_;  // of all parameters
  at::Tensor left_, right_;       // flat, so that each is summed at once
};

}  // namespace lissome

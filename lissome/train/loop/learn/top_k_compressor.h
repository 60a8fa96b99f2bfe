// The largest elements of each gradient, with the momentum of SGD taken before; see TopKGradients.
#pragma once

#include "lissome/train/loop/learn/gradient_compressor.h"

namespace lissome {

// Elements that a gradient of so many sends; 0: all travel.
int64_t count_top_elements(int64_t elements, double share);

class TopKCompressor : public GradientCompressor {
 public:
  // Throws usage, see make_compressor().
  TopKCompressor(const TopKGradients& options, const NamedTensors& parameters, const CompressedOptimizer& optimizer);

  int64_t dense_steps() const override { return dense_steps_; }
  bool takes(size_t parameter) const override { return kept_[parameter].sent > 0; }
  void prepare(const std::vector<at::Tensor>& gradients, const RankShare& share) override;
  void sum(Group& group, const std::vector<at::Tensor>& gradients, const std::string& what) override;
  void adjust(StepOptions& options) const override;
  int64_t count_bytes() const override { return message_.numel() * static_cast<int64_t>(sizeof(int32_t)); }
  NamedTensors list_own_state() const override;
  NamedTensors list_common_state() const override { return {}; }

 private:
  // What a parameter keeps of former steps.
  struct Kept {
    std::string name;
    int64_t sent = 0;     // elements of a step; 0: every number travels
    at::Tensor unsent;    // flat; undefined where every number travels
    at::Tensor velocity;  // flat; undefined without momentum
  };

  const int64_t dense_steps_;
  const double clip_norm_, momentum_;
  const bool nesterov_;
  std::vector<Kept> kept_;
  at::Tensor message_;  // i32: the indices of all parameters, then the bits of their values
};

}  // namespace lissome

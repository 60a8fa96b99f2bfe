// Keeps small f16 gradients from vanishing: the loss is multiplied by a scale, Optimizer::step divides the gradients by
// it, and the scale adapts to overflows as in torch.amp.GradScaler.
#pragma once

#include <cstdint>

#include "lissome/program.h"
#include "lissome/train/optim/optimizer.h"

namespace lissome {

// Defaults are PyTorch's.
struct LossScalerOptions {
  double initial = 65536, growth = 2, backoff = 0.5;
  int64_t interval = 2000;  // the scale grows after so many steps without a skipped one
};

class LossScaler {
 public:
  // Throws invalid_input unless initial > 0, growth > 1, 0 < backoff < 1 and interval > 0.
  explicit LossScaler(const LossScalerOptions& options = {});

  double scale() const { return scale_; }
  // To be called after each step. `skipped`: a gradient was not finite. The scale stays within f32.
  void update(bool skipped);

  // "loss_scale" f32[] and "growth_tracker" i64[], for snapshots.
  NamedTensors state() const;
  // Throws invalid_input for a state that state() cannot give, and then changes nothing.
  void restore_state(const NamedTensors& state);

 private:
  LossScalerOptions options_;
  float scale_;
  int64_t tracker_ = 0;  // steps since the scale changed
};

// Adds an input "loss_scale" f32[] to `program` and multiplies its first output, the loss, by it.
Program attach_loss_scale(const Program& program);

}  // namespace lissome

// Keeps small gradients of f16 from vanishing: the loss is multiplied by a scale, Optimizer::step divides the gradients
// by it, and the scale follows what steps meet, as in torch.amp.GradScaler.
#pragma once

#include <cstdint>

#include "lissome/program.h"
#include "lissome/train/optim/optimizer.h"

namespace lissome {

// Defaults are PyTorch's.
struct LossScalerOptions {
  double initial = 65536, growth = 2, backoff = 0.5;
  int64_t interval = 2000;  // steps without a skipped one after which the scale grows
};

class LossScaler {
 public:
  // Throws invalid_input unless initial > 0, growth > 1, 0 < backoff < 1 and interval > 0.
  explicit LossScaler(const LossScalerOptions& options = {});

  double scale() const { return scale_; }
  // After each step: `skipped` when a gradient was not finite. Growth ends where f32 does.
  void update(bool skipped);

  // "loss_scale" f32[] and "growth_tracker" i64[], for snapshots.
  NamedTensors state() const;
  // Throws invalid_input, changing nothing, for what state() does not give.
  void restore_state(const NamedTensors& state);

 private:
  LossScalerOptions options_;
  float scale_;
  int64_t tracker_ = 0;  // steps since the scale changed
};

// `program`, whose first output is its loss, with a further input "loss_scale" f32[], which the first output is
// multiplied by.
Program attach_loss_scale(const Program& program);

}  // namespace lissome

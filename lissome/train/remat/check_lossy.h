// Whether activations may wait in bf16: steps of both kinds side by side, before training begins.
#pragma once

#include <string>

#include "lissome/train/loop/trainer.h"

namespace lissome {

// Gradients may differ by so much of their norm. A number in bf16 has 8 bits, so each of them is off by 0.4 % at most.
inline constexpr double kLossyLimit = 0.02;

struct LossyCheck {
  bool allowed = false;
  std::string told;  // what was measured
};

// Runs the step that options.memory and options.recompute ask for with lossy storage, and an exact one, on a few
// samples of the data, and compares losses and all gradients, of whose norm `limit` may differ. Weights and state stay
// as they are. Throws usage without a memory bound to fit or with recompute none, and what the steps throw.
LossyCheck check_lossy(const Program& model, const Dataset& data, const Dataset* validation,
                       const TrainOptions& options, double limit = kLossyLimit);

}  // namespace lissome

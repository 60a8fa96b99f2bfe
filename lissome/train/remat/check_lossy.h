// Decides whether activations may be kept in bf16: compares lossy and exact steps before training begins.
#pragma once

#include <string>

#include "lissome/train/loop/trainer.h"

namespace lissome {

// The largest allowed difference of gradients, as a fraction of their norm. A bf16 number has 8 significant bits, so
// each activation is off by at most 0.4 %.
inline constexpr double kLossyLimit = 0.02;

struct LossyCheck {
  bool allowed = false;
  std::string report;  // the measured differences, for people
};

// Runs the step that options.memory and options.recompute ask for with lossy storage, and an exact step, on a few
// samples of the data. Compares losses and all gradients, which may differ by `limit` of their norm. Weights and state
// stay as they are. Throws usage without a memory limit to fit into or with recompute none, and the errors of the
// steps.
LossyCheck check_lossy(const Program& model, const Dataset& data, const Dataset* validation,
                       const TrainOptions& options, double limit = kLossyLimit);

}  // namespace lissome

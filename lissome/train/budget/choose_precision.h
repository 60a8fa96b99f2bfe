// Decides whether mixed precision pays for this model on this machine.
#pragma once

#include <string>

#include "lissome/train/loop/trainer.h"

namespace lissome {

struct PrecisionChoice {
  Dtype precision = Dtype::f32;
  std::string reason;  // for people: the measured times
};

// Runs steps in f32 and in bf16 in turns over the first samples. Chooses bf16 if a step then takes at most 0.9 of the
// time in f32 at the upper end of the interval. Weights, state and random numbers stay as they were. Both steps are in
// memory at once, so this throws usage if options.memory limits it, and the errors of make_batch_step().
PrecisionChoice choose_precision(const Program& model, const Dataset& data, const Dataset* validation,
                                 const TrainOptions& options);

}  // namespace lissome

// Whether mixed precision pays on this machine, for this model.
#pragma once

#include <string>

#include "lissome/train/loop/trainer.h"

namespace lissome {

struct PrecisionChoice {
  Dtype precision = Dtype::f32;
  std::string reason;  // for people: what was measured
};

// f32 or bf16: steps of both in turns over the first samples; bf16 where it takes at most nine tenths of the time, for
// certain. Weights, state and random numbers stay as they were. Both steps lie in memory meanwhile: throws usage where
// options.memory bounds it. Throws what make_batch_step() throws.
PrecisionChoice choose_precision(const Program& model, const Dataset& data, const Dataset* validation,
                                 const TrainOptions& options);

}  // namespace lissome

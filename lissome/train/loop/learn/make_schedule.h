// The learning rates of a training, from its options and its length.
#pragma once

#include "lissome/train/loop/train_length.h"
#include "lissome/train/loop/trainer.h"
#include "lissome/train/optim/schedule.h"

namespace lissome {

// The rate is that of the options or the optimizer's own, times `accumulate` if the options say so. Throws the errors
// of parse_schedule().
Schedule make_schedule(const TrainOptions& options, const TrainLength& length);

}  // namespace lissome

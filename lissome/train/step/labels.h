// The model with its loss, after a look at whether all labels fit it.
#pragma once

#include "lissome/data.h"
#include "lissome/train/loop/trainer.h"

namespace lissome {

// Throws invalid_input: no labels for a loss that needs some, labels that no class has (naming the sample), what
// attach_loss() and attach_loss_function() refuse. `batch` samples are enough to record a loss given as a function.
Program attach_checked_loss(const Program& model, const Dataset& data, const Dataset* validation,
                            const TrainOptions& options, int64_t batch);

}  // namespace lissome

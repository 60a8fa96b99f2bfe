// Generates samples for commands that need only their sizes.
#pragma once

#include "lissome/data.h"
#include "lissome/train.h"

namespace lissome {

// Generates inputs of the export's sizes for the smallest batch, and labels that fit the loss. Dynamic sizes are those
// of CallSizes::choose(). Throws the errors of running the model on them.
Dataset make_example_data(const Program& model, const LossOptions& loss);

}  // namespace lissome

// Samples where a command needs only their sizes.
#pragma once

#include "lissome/data.h"
#include "lissome/train.h"

namespace lissome {

// Generated inputs of the export's own sizes, for the smallest batch, and labels that fit the loss; see
// CallSizes::choose() for sizes that vary. Throws what running the model on them throws.
Dataset make_example_data(const Program& model, const LossOptions& loss);

}  // namespace lissome

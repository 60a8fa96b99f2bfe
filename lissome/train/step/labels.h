// Attaches the loss to a model after checking all labels.
#pragma once

#include "lissome/data.h"
#include "lissome/train/loop/trainer.h"

namespace lissome {

// Throws invalid_input for missing labels and for labels outside of the classes or below a probability of 0 (naming
// the sample), and the errors of attach_loss() and attach_loss_function(). `batch` samples are enough to record a loss
// that is given as a function.
Program attach_checked_loss(const Program& model, const Dataset& data, const Dataset* validation,
                            const TrainOptions& options, int64_t batch);

// What to know of probabilities [samples, classes, ...] that do not sum to 1 over the classes, as libtorch allows.
// Empty where they do and for other losses and labels.
std::string describe_label_sums(const Dataset& data, const LossOptions& loss);

}  // namespace lissome

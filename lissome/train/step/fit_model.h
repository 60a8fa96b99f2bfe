// Narrows a model to one training: sizes that the data determine become fixed, and if gradients cannot be recorded for
// every batch, the range of batches becomes smaller.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lissome/data.h"
#include "lissome/program.h"

namespace lissome {

// The batches for which gradients are recorded, from the widest range on.
enum class BatchFit {
  any,          // the model's own range
  two_or_more,  // autograd's formulas differ for a size of 1
  one_size      // exactly `batch` samples
};

// The model with the same weights. Named sizes other than the batch become those of the samples, if these are equal in
// `data` and `validation`. Empty if this fit equals the one before it.
std::optional<Program> fit_model(const Program& model, const Dataset& data, const Dataset* validation, BatchFit fit,
                                 int64_t batch);

// The model with batches of `least` samples or more, if their number is a named dimension.
Program raise_least_batch(Program model, int64_t least);

// Calls `start`, which records gradients, with one fit after another until it throws neither unsupported nor
// invalid_input. `notice`: which batches are excluded, and why; empty if none are. Throws the error of the widest fit
// if all throw.
using FitTaker = std::function<void(Program fitted, const std::string& notice)>;
void fit_widest(const Program& model, const Dataset& data, const Dataset* validation, int64_t batch,
                const FitTaker& start);

}  // namespace lissome

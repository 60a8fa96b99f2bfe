// A model narrowed to what one training needs of it: sizes that the data fix are fixed, and where gradients cannot be
// recorded for every batch, for the batches that are left.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lissome/data.h"
#include "lissome/program.h"

namespace lissome {

// Which batches gradients are recorded for, from the widest on.
enum class BatchFit {
  any,          // as the model's own
  two_or_more,  // formulas of autograd take another path where a size is 1
  one_size      // exactly `batch` samples
};

// The same weights. Named sizes but the batch become those of the samples, in `validation` too; nothing where samples
// may differ in size. Empty where the fit changes nothing over the one before it.
std::optional<Program> fit_model(const Program& model, const Dataset& data, const Dataset* validation, BatchFit fit,
                                 int64_t batch);

// Calls `start`, which records gradients, with the widest fit for which it can: the first for which it throws neither
// unsupported nor invalid_input. `notice` says what batches are left out and why; empty where none are. Throws the
// error of the widest fit where all throw.
using FitTaker = std::function<void(Program fitted, const std::string& notice)>;
void fit_widest(const Program& model, const Dataset& data, const Dataset* validation, int64_t batch,
                const FitTaker& start);

}  // namespace lissome

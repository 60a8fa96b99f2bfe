// Chooses how many samples of a batch run at once where memory does not decide it.
#pragma once

#include <string>
#include <vector>

#include "lissome/train/optim/accumulate.h"

namespace lissome {

// Fewer samples at once need less cache. Halves their number as long as the step then takes at most 0.9 of its time at
// the upper end of the interval. `step` must be able to split its batches (may_split()). Returns the measured times,
// for people.
std::string choose_parts(BatchStep& step, const std::vector<at::Tensor>& batch);

}  // namespace lissome

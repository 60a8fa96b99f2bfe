// How many samples of a batch run together, where memory does not decide it.
#pragma once

#include <string>
#include <vector>

#include "lissome/train/optim/accumulate.h"

namespace lissome {

// Fewer at once need less of the caches: halves their number as long as that takes at most nine tenths of the time, for
// certain. `step` may split its batches (may_split()). Returns what was measured, for people.
std::string choose_parts(BatchStep& step, const std::vector<at::Tensor>& batch);

}  // namespace lissome

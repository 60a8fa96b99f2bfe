// Batch norm over the samples of all ranks in place of one rank's.
#pragma once

#include <string_view>

#include "lissome/program.h"

namespace lissome {

// Its name among the passes of a step.
inline constexpr std::string_view kSynchronizePass = "synchronize_batch_norm";

// Turns each batch norm that normalizes by its batch into lissome::synchronized_batch_norm, before gradients are
// recorded. Instance norm stays: its statistics are of one sample. Returns how many there were. Throws unsupported,
// naming the layer, for one whose statistics something else reads.
int synchronize_batch_norm(Program& program);

}  // namespace lissome

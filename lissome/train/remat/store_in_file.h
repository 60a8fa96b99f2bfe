// Keeps idle activations in a file: writes them behind their last reader in the forward pass and reads them before
// their first reader in the backward pass. Bits stay the same. A session of such a plan needs
// SessionOptions::offload_folder.
#pragma once

#include "lissome/train/remat/spill.h"

namespace lissome {

// Spills values of 1 MiB and more; see spill_values().
Spills store_in_file(Plan& plan, std::span<const Sizes> inputs, int threads, int64_t wanted);

}  // namespace lissome

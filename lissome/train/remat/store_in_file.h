// Activations that wait for long, in a file: written behind their last reader in the forward pass, read before the
// first in the backward pass. The same bits; a session of such a plan needs SessionOptions::offload_folder.
#pragma once

#include "lissome/train/remat/spill.h"

namespace lissome {

// Values of 1 MiB and more, as send_on_spill() does it.
Spills store_in_file(Plan& plan, std::span<const Sizes> inputs, int threads, int64_t wanted);

}  // namespace lissome

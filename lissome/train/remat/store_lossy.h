// Activations that wait for long, in half of their bytes: stored as bf16 behind their last reader in the forward pass,
// made f32 again before the first in the backward pass.
#pragma once

#include "lissome/train/remat/spill.h"

namespace lissome {

// f32 values of 64 KiB and more, as send_on_spill() does it.
Spills store_in_bf16(Plan& plan, std::span<const Sizes> inputs, int threads, int64_t wanted);

}  // namespace lissome

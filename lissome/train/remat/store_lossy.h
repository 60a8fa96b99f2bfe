// Keeps idle activations in bf16, in half of their bytes: stores them as bf16 behind their last reader in the forward
// pass and converts them to f32 before their first reader in the backward pass.
#pragma once

#include "lissome/train/remat/spill.h"

namespace lissome {

// Spills f32 values of 64 KiB and more; see spill_values().
Spills store_in_bf16(Plan& plan, std::span<const Sizes> inputs, int threads, int64_t wanted);

}  // namespace lissome

// Activations that wait for long, in half of their bytes: stored as bf16 behind their last reader in the forward pass,
// made f32 again before the first in the backward pass. Works on a plan, so that no pass or fusion sees the detour.
#pragma once

#include <cstdint>
#include <span>

#include "lissome/runtime.h"

namespace lissome {

struct LossyStorage {
  int values = 0;
  int64_t elements = 0;
};

// Values that wait where the arena is fullest, the largest first, until the arena takes no more than `wanted` bytes or
// nothing is left that would help. Only f32 values of 64 KiB and more that are no outputs, and that libtorch does not
// hold on to. `inputs` and `threads` as for find_footprint().
LossyStorage store_in_bf16(Plan& plan, std::span<const Sizes> inputs, int threads, int64_t wanted);

}  // namespace lissome

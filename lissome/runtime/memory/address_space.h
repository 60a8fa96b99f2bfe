// A limit on address space (ulimit -v), looked at before libtorch is loaded: where memory runs out while libtorch sets
// itself up, the process is aborted.
#pragma once

#include <cstdint>

namespace lissome {

// What loading libtorch takes at least. Measured on libtorch 2.13 for processors: 390 MiB of address space, and what
// its first use allocates.
constexpr int64_t kLibtorchAddressSpace = int64_t{512} << 20;

// Throws over_budget, naming limit and need, where a limit leaves this process less than loading libtorch takes.
// Nothing where libtorch is loaded already.
void require_space_for_libtorch();

}  // namespace lissome

#include "lissome/runtime/memory/arena_guard.h"

#include <algorithm>
#include <atomic>

#include "lissome/runtime/memory/forbid_memory.h"

namespace lissome {
namespace {

std::atomic<bool> guarded{false};

}  // namespace

void guard_arenas(bool on) { guarded = on; }
bool guards_arenas() { return guarded; }

PlannedArena place_apart(std::vector<PlannedBuffer>& buffers) {
  constexpr int64_t kGap = 64;
  PlannedArena arena;
  for (PlannedBuffer& buffer : buffers) {
    buffer.offset = arena.bytes;
    // Sizes are bounded one by one, not their sum: what is too large stays too large.
    const int64_t room = (std::max<int64_t>(buffer.bytes, 0) / kGap + 2) * kGap;
    arena.bytes = std::min(arena.bytes + room, int64_t{1} << 60);
  }
  arena.least_bytes = arena.bytes;
  return arena;
}

void forbid_gaps(const Arena& arena, std::span<const PlannedBuffer> buffers) {
  forbid_memory(arena.data(), arena.bytes());
  for (const PlannedBuffer& buffer : buffers) allow_memory(arena.data() + buffer.offset, buffer.bytes);
}

}  // namespace lissome

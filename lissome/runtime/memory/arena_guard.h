// For checks under the address sanitizer: arenas that give each buffer a place of its own for the whole run, with
// memory between them that is forbidden, so that a kernel that leaves one buffer does not land in another unseen.
#pragma once

#include <span>

#include "lissome/runtime/memory/arena.h"
#include "lissome/runtime/memory/memory_plan.h"

namespace lissome {

// Of sessions made from now on. Costs memory; off unless a test wants it.
void guard_arenas(bool on);
bool guards_arenas();

// In place of plan_memory(): no two buffers share a byte.
PlannedArena place_apart(std::vector<PlannedBuffer>& buffers);
// Forbids all of the arena but the buffers; what an earlier binding forbade is allowed again.
void forbid_gaps(const Arena& arena, std::span<const PlannedBuffer> buffers);

}  // namespace lissome

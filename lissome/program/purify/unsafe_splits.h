// Splits whose parts are views of a tensor that nobody else looks at, as ATen's recurrent layers make them and write to
// the parts: what is written to one part is seen in no other value.
#pragma once

#include <set>

#include "lissome/program/program.h"

namespace lissome {

// Turns such unsafe_splits into copies, whose parts can be written apart. Returns their lists of parts, each of which
// one node at most takes out.
std::set<ValueId> part_unsafe_splits(Program& program);
// Turns those back into views whose parts no node writes to any more.
void join_unsafe_splits(Program& program, const std::set<ValueId>& parted);

}  // namespace lissome

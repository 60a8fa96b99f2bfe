// How the ranks of a group find each other in a store that may hold what dead processes left.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <string>

#include "lissome/distributed/group_place.h"

namespace lissome {

// Connects to the store, which rank 0 hosts unless a launcher does. Throws io.
c10::intrusive_ptr<c10d::Store> open_store(const GroupPlace& place, double timeout_seconds);

// A name for this group that no earlier one had, the same on each rank: rank 0 chooses it and answers each rank's
// question, which is new each time, so that nobody reads what an earlier process was answered. Throws io for a rank
// that does not come within the timeout, and usage for one that counts other ranks.
std::string agree_on_name(const c10::intrusive_ptr<c10d::Store>& store, const GroupPlace& place,
                          double timeout_seconds);

}  // namespace lissome

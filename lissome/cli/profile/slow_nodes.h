// The nodes of a profile that lose time, for `audit --slow`.
#pragma once

#include "lissome/cli/profile/profile.h"

namespace lissome {

// A node loses what it takes above the machine's limit, if it takes more than twice that; a node that only moves data,
// or runs through libtorch, whose limit is unknown, loses all its time. A limit is at least a barrier of the threads.
// Rows are sorted by the time lost; nodes that lose less than half a percent of a call are left out.
Table list_slow_nodes(const Profile& profile, const MachinePeaks& peaks, int64_t working_set);

}  // namespace lissome

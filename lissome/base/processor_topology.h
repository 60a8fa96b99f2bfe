// Which processors of the kernel's list are threads of one core, read from files under a root: "" on a machine, a
// folder of made-up files in tests.
#pragma once

#include <string>
#include <vector>

namespace lissome {

// How many cores `processors` (the kernel's numbers) are threads of. One that the kernel tells nothing of counts as a
// core of its own.
int count_cores(const std::string& root, const std::vector<int>& processors);

}  // namespace lissome

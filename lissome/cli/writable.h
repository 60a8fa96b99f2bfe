// Whether a result can be written where it shall go: better told before long work than after it.
#pragma once

#include <string>

namespace lissome {

// An empty path is none. Throws usage where there is no such folder or the path is one, io without permission.
// Removes temporary files beside it that killed processes left.
void check_writable(const std::string& path);

}  // namespace lissome

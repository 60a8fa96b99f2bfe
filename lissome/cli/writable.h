// Whether a result can be written where it shall go: better told before long work than after it.
#pragma once

#include <string>
#include <vector>

namespace lissome {

// An empty path is none. Throws usage where there is no such folder or the path is one, io without permission.
// Removes temporary files beside it that killed processes left.
void check_writable(const std::string& path);

// Throws usage where the output is a file that is read: the model, or a file of data.
void refuse_overwriting(const std::string& output, const std::string& model, const std::vector<std::string>& data);

}  // namespace lissome

// Checks before long work that a result can be written to its path.
#pragma once

#include <string>
#include <vector>

namespace lissome {

// Throws usage if the folder does not exist or the path is a folder, io without permission. An empty path passes.
// Removes temporary files of killed processes beside the path.
void check_writable(const std::string& path);

// Throws usage if the output is one of the inputs: the model, or a file of data.
void refuse_overwriting(const std::string& output, const std::string& model, const std::vector<std::string>& data);

}  // namespace lissome

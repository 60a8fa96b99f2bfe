// Checks before long work that a result can be written to its path.
#pragma once

#include <string>
#include <vector>

namespace lissome {

// Throws usage if the folder does not exist or the path is a folder, io without permission. An empty path passes.
// Removes temporary files of killed processes beside the path.
void check_writable(const std::string& path);

// Throws usage if two of the files that a command writes are one, or if one of them is the model or a file of data that
// the command reads. Empty paths pass, and what is no regular file: /dev/null.
void refuse_overwriting(const std::vector<std::string>& outputs, const std::string& model,
                        const std::vector<std::string>& data);

}  // namespace lissome

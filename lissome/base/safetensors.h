// The safetensors format: weights by name, no code.
#pragma once

#include <string>
#include <vector>

#include "lissome/base/tensor.h"

namespace lissome {

// In file order, borrowing the mapped file where aligned. Header at most 100 MB, offsets checked, no gaps or overlaps.
std::vector<NamedArray> load_safetensors(const std::string& path);
void save_safetensors(const std::string& path, const std::vector<NamedArray>& arrays);

}  // namespace lissome

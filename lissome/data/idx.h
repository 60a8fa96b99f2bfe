// The IDX format of MNIST and its relatives, gzip or plain.
#pragma once

#include <string>

#include "lissome/base.h"

namespace lissome {

// True when the file starts like gzip or like an IDX header.
bool looks_like_idx(std::span<const std::byte> bytes);
// Throws usage (no such file), invalid_input (another format, cut off, wrong length), over_budget (unpacks to more than
// the machine's memory).
Array load_idx(const std::string& path);

}  // namespace lissome

// Whether lower or higher values of a metric are better, for plateaus and early stopping.
#pragma once

#include <cstdint>

namespace lissome {

enum class Better : uint8_t { lower, higher };

}  // namespace lissome

// Which of two values of a metric is the better one: what plateaus and early stopping ask.
#pragma once

#include <cstdint>

namespace lissome {

enum class Better : uint8_t { lower, higher };

}  // namespace lissome

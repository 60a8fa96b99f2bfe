// Each byte looked up in a table of 256: any function of one number between layers in int8.
#pragma once

#include <cstdint>

namespace lissome {

struct LutU8Call {
  const uint8_t* x = nullptr;
  const uint8_t* table = nullptr;  // [256]
  uint8_t* y = nullptr;            // may be x
  int64_t count = 0;
};

}  // namespace lissome

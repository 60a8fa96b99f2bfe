// Numbers in the records of zip archives that reading and writing share (PKWARE's APPNOTE.TXT, sections 4.3 and 4.4).
#pragma once

#include <cstdint>

namespace lissome {

inline constexpr uint32_t kNone32 = 0xFFFFFFFF;  // the value stands in the Zip64 field
inline constexpr uint16_t kStored = 0, kDeflated = 8;

}  // namespace lissome

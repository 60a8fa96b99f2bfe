// CRC-32C (Castagnoli, RFC 3720), which the records of event files carry.
#pragma once

#include <cstdint>
#include <string_view>

namespace lissome {

uint32_t measure_crc32c(std::string_view bytes);

}  // namespace lissome

// Quantities as people write them, read and printed: durations, bytes, ratios.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lissome {

double parse_duration(std::string_view text);  // "5ms", "10 min", "1us", "2s", "1h" -> seconds; usage error otherwise
int64_t parse_bytes(std::string_view text);    // "200MiB", "4GiB", "512kB", "100" -> bytes; usage error otherwise
double parse_rate(std::string_view text);      // "500/s", "500" -> 500 a second; usage error otherwise
double parse_fraction(std::string_view text);  // "0.5%" or "0.005" -> 0.005; usage error otherwise
std::string format_duration(double seconds);   // "4.21 ms"
std::string format_bytes(int64_t bytes);       // "3.4 MiB"
std::string format_percent(double fraction);   // "0.50 %"

}  // namespace lissome

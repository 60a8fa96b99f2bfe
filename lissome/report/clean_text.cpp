#include "lissome/report/clean_text.h"

#include <algorithm>
#include <cstdint>

#include "lissome/base.h"

namespace lissome {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes of the character that starts here; 0 when this byte starts none.
size_t count_bytes_of_character(std::string_view text) {
  for (size_t bytes = 1; bytes <= std::min<size_t>(4, text.size()); ++bytes) {
    if (is_utf8(text.substr(0, bytes))) return bytes;
  }
  return 0;
}

uint32_t decode(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  uint32_t code = first & (0x7Fu >> character.size());
  for (char byte : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(byte) & 0x3Fu);
  return code;
}

bool is_control(uint32_t code) {
  // C0, DEL, C1; marks that turn the direction of the text around; separators of lines.
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0x2028 || code == 0x2029;
}

bool is_wide(uint32_t code) {
  struct Range {
    uint32_t first, last;
  };
  constexpr Range kWide[] = {{0x1100, 0x115F}, {0x2E80, 0xA4CF},   {0xAC00, 0xD7A3},
                             {0xF900, 0xFAFF}, {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
                             {0xFFE0, 0xFFE6}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};
  return std::any_of(std::begin(kWide), std::end(kWide),
                     [&](const Range& range) { return code >= range.first && code <= range.last; });
}

}  // namespace

std::string clean_text(std::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const size_t bytes = count_bytes_of_character(text);
    const std::string_view character = text.substr(0, std::max<size_t>(bytes, 1));
    if (bytes == 0) {
      clean += kReplacement;
    } else if (is_control(decode(character))) {
      clean += ' ';
    } else {
      clean += character;
    }
    text.remove_prefix(character.size());
  }
  return clean;
}

size_t count_columns(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    const size_t bytes = std::max<size_t>(count_bytes_of_character(text), 1);
    columns += is_wide(decode(text.substr(0, bytes))) ? 2 : 1;
    text.remove_prefix(bytes);
  }
  return columns;
}

}  // namespace lissome

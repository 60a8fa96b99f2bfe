// Small text helpers; JSON has its own file.
#include "lissome/base/text.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace lissome {
namespace {

constexpr size_t kLongestQuote = 120;
constexpr size_t kFarthestName = 3;

// Length of the valid UTF-8 sequence at the start of `text`, 0 when there is none (overlong forms, surrogates and code
// points above U+10FFFF are not valid).
size_t measure_utf8(std::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  auto follows = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (first == 0xE0 && byte(1) < 0xA0) return 0;
    if (first == 0xED && byte(1) > 0x9F) return 0;
    return follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) > 0x8F) return 0;
    return follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

// C0 and C1 controls, which terminals obey, and the marks that turn the direction of text around.
bool is_control(std::string_view sequence) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(sequence[i]); };
  if (sequence.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7F;
  if (sequence.size() == 2) return byte(0) == 0xC2 && byte(1) < 0xA0;
  if (sequence.size() != 3 || byte(0) != 0xE2) return false;
  const bool marks = byte(1) == 0x80 && (byte(2) == 0x8E || byte(2) == 0x8F || (byte(2) >= 0xA8 && byte(2) <= 0xAE));
  return marks || (byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9);
}

size_t measure_edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

std::string join_few(std::vector<std::string> parts, size_t most, std::string_view separator) {
  const size_t more = parts.size() > most ? parts.size() - most : 0;
  parts.resize(parts.size() - more);
  if (more > 0) parts.push_back("and " + std::to_string(more) + " more");
  return join(parts, separator);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t start = 0;
  while (true) {
    const size_t end = text.find(separator, start);
    parts.emplace_back(text.substr(start, end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = measure_utf8(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

size_t measure_printable(std::string_view text) {
  const size_t length = measure_utf8(text);
  return is_control(text.substr(0, length)) ? 0 : length;
}

std::string escape_byte(char byte) {
  static constexpr char kHex[] = "0123456789abcdef";
  const auto number = static_cast<uint8_t>(byte);
  return {'\\', 'x', kHex[number >> 4], kHex[number & 15]};
}

std::string quote(std::string_view text) {
  std::string quoted = "'";
  while (!text.empty()) {
    if (quoted.size() > kLongestQuote) return quoted + "...'";
    const size_t length = measure_printable(text);
    quoted += length == 0 ? escape_byte(text[0]) : std::string(text.substr(0, length));
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return quoted + "'";
}

std::string find_nearest(std::string_view name, const std::vector<std::string>& known) {
  std::string nearest;
  size_t smallest = kFarthestName + 1;
  for (const std::string& candidate : known) {
    const size_t longer = std::max(candidate.size(), name.size());
    if (longer - std::min(candidate.size(), name.size()) >= smallest) continue;
    const size_t distance = measure_edit_distance(name, candidate);
    // A word that shares less than half of its letters with the name is no suggestion.
    if (distance < smallest && 2 * distance <= longer) {
      smallest = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

bool matches_pattern(std::string_view pattern, std::string_view text) {
  // Greedy with one place to return to: linear in space, at worst quadratic in time.
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace lissome

// Spelling of literals; see literal.h. std::to_chars gives the shortest text that round-trips.
#include "lissome/program/syntax/literal.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lissome/base.h"

namespace lissome {

bool is_bare_name(std::string_view name) {
  if (name.empty() || name.front() == '.' || name.back() == '.' || name.find("..") != std::string_view::npos) {
    return false;
  }
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
}

bool is_bare_source(std::string_view source) {
  const size_t colon = source.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == source.size()) return false;
  return std::all_of(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(colon),
                     [](char c) {
                       return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                              std::string_view("_./+-").find(c) != std::string_view::npos;
                     }) &&
         source.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
}

std::string write_name(std::string_view name) { return is_bare_name(name) ? std::string(name) : write_string(name); }

std::string write_word(std::string_view name) {
  return is_bare_name(name) && (name[0] < '0' || name[0] > '9') ? std::string(name) : write_string(name);
}

std::string write_string(std::string_view text) {
  const bool holds_double = text.find('"') != std::string_view::npos;
  const bool holds_single = text.find('\'') != std::string_view::npos;
  const char quote = holds_double && !holds_single ? '\'' : '"';
  std::string result(1, quote);
  while (!text.empty()) {
    const char c = text[0];
    const size_t length = measure_printable(text);
    if (c == quote || c == '\\') {
      result += {'\\', c};
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (c == '\r') {
      result += "\\r";
    } else {
      result += length == 0 ? escape_byte(c) : std::string(text.substr(0, length));
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return result + quote;
}

std::string write_floating(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace lissome

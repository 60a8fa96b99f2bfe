// Small text helpers and bounded JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace lissome {

using Json = nlohmann::ordered_json;

// Parses JSON with at most `max_depth` nested levels, at most `max_values` values, no duplicate keys, UTF-8 only.
// `source` names the document in errors (invalid_input with line and column).
Json parse_json(std::string_view text, std::string_view source, int max_depth = 64, size_t max_values = 20'000'000);

// On one line. Here and not in every file, because the writer takes a second to compile.
std::string print_json(const Json& json);

std::string join(const std::vector<std::string>& parts, std::string_view separator);
// The first `most` parts and, where there are others, "and N more": "a, b, and 2 more".
std::string join_few(std::vector<std::string> parts, size_t most, std::string_view separator = ", ");
std::vector<std::string> split(std::string_view text, char separator);
bool is_utf8(std::string_view text);
// Bytes of the UTF-8 sequence at the start of `text`, not empty; 0 where it is broken, or would steer a terminal
// instead of being shown (controls, marks of direction).
size_t measure_printable(std::string_view text);
std::string escape_byte(char byte);  // "\x1b"
// 'text' for messages: in quotes, control and broken bytes as \xNN, at most 120 characters.
std::string quote(std::string_view text);
// The known name nearest to `name` (edit distance at most 3), or empty: for "did you mean".
std::string find_nearest(std::string_view name, const std::vector<std::string>& known);
// Shell-style pattern with * and ?.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace lissome

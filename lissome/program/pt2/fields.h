// Typed reading of a JSON document that nobody vouches for: each function checks the kind and throws invalid_input with
// what was seen and what is allowed. Callers add the place (file, node) on the way out. Torch-free.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "lissome/base.h"

namespace lissome {

// "an object of 3 members", "the text 'abc'", "the number 3": for messages.
std::string describe_json(const Json& value);

const Json& json_member(const Json& object, std::string_view key);       // must be there
const Json* find_json_member(const Json& object, std::string_view key);  // null when absent or JSON's null
const std::string& json_text(const Json& value, std::string_view what);
int64_t json_integer(const Json& value, std::string_view what);
double json_number(const Json& value, std::string_view what);  // "Infinity", "-Infinity", "NaN" as torch writes them
bool json_boolean(const Json& value, std::string_view what);
const Json::array_t& json_list(const Json& value, std::string_view what);
const Json& json_object(const Json& value, std::string_view what);

// An object with exactly one member, {"as_int": 3}: torch's way to write one of several kinds.
struct JsonUnion {
  std::string_view kind;
  const Json& value;
};
JsonUnion json_union(const Json& value, std::string_view what);

// The members `text` of an object, both required, which is how most fields are read.
inline const std::string& text_member(const Json& object, std::string_view key) {
  return json_text(json_member(object, key), key);
}
inline const Json::array_t& list_member(const Json& object, std::string_view key) {
  return json_list(json_member(object, key), key);
}

}  // namespace lissome

// Kinds of JSON values checked one by one; see fields.h.
#include "lissome/program/pt2/fields.h"

#include <limits>

namespace lissome {
namespace {

[[noreturn]] void refuse(std::string_view what, std::string_view allowed, const Json& seen) {
  throw_error(ErrorKind::invalid_input, quote(what), " must be ", allowed, ", not ", describe_json(seen));
}

}  // namespace

std::string describe_json(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::object: return "an object of " + std::to_string(value.size()) + " members";
    case Json::value_t::array: return "a list of " + std::to_string(value.size()) + " items";
    case Json::value_t::string: return "the text " + quote(value.get_ref<const std::string&>());
    case Json::value_t::boolean: return value.get<bool>() ? "true" : "false";
    default: return "the number " + print_json(value);
  }
}

const Json* find_json_member(const Json& object, std::string_view key) {
  if (!object.is_object()) refuse(key, "a member of an object", object);
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const Json& json_member(const Json& object, std::string_view key) {
  const Json* found = find_json_member(object, key);
  if (found == nullptr)
    throw_error(ErrorKind::invalid_input, "the member ", quote(key), " is missing in ", describe_json(object));
  return *found;
}

const std::string& json_text(const Json& value, std::string_view what) {
  if (!value.is_string()) refuse(what, "text", value);
  return value.get_ref<const std::string&>();
}

int64_t json_integer(const Json& value, std::string_view what) {
  if (!value.is_number_integer()) refuse(what, "an integer", value);
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    refuse(what, "an integer of at most 63 bits", value);
  return value.get<int64_t>();
}

double json_number(const Json& value, std::string_view what) {
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  }
  refuse(what, "a number", value);
}

bool json_boolean(const Json& value, std::string_view what) {
  if (!value.is_boolean()) refuse(what, "true or false", value);
  return value.get<bool>();
}

const Json::array_t& json_list(const Json& value, std::string_view what) {
  if (!value.is_array()) refuse(what, "a list", value);
  return value.get_ref<const Json::array_t&>();
}

const Json& json_object(const Json& value, std::string_view what) {
  if (!value.is_object()) refuse(what, "an object", value);
  return value;
}

JsonUnion json_union(const Json& value, std::string_view what) {
  if (!value.is_object() || value.size() != 1) refuse(what, "an object with one member that names its kind", value);
  const auto first = value.begin();
  return {first.key(), first.value()};
}

}  // namespace lissome

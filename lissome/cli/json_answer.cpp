#include "lissome/cli/json_answer.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "lissome/base.h"

namespace lissome {
namespace {

Json to_number(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
  return number;
}

template <typename T>
Json to_value(T value) {
  if constexpr (requires { value.imag(); }) {
    return Json::array({to_number(value.real()), to_number(value.imag())});
  } else if constexpr (std::is_integral_v<T>) {  // bool too
    return value;
  } else {
    return to_number(static_cast<double>(value));
  }
}

// The list at a depth. `next` walks over the elements, which are dense and row-major.
template <typename T>
Json nest_values(const Sizes& sizes, size_t depth, const T*& next) {
  if (depth == sizes.size()) return to_value(*next++);
  Json list = Json::array();
  list.get_ref<Json::array_t&>().reserve(static_cast<size_t>(sizes[depth]));
  for (int64_t i = 0; i < sizes[depth]; ++i) list.push_back(nest_values(sizes, depth + 1, next));
  return list;
}

bool has_values(Dtype dtype) {
  switch (dtype) {
    case Dtype::c32:
    case Dtype::f8_e4m3fn:
    case Dtype::f8_e5m2:
    case Dtype::f8_e4m3fnuz:
    case Dtype::f8_e5m2fnuz: return false;
    default: return true;
  }
}

}  // namespace

std::string print_answer(std::string_view command, Json result, std::span<const Table> tables) {
  Json answer{
      {"lissome", lissome_version()}, {"command", command}, {"result", std::move(result)}, {"tables", Json::array()}};
  for (const Table& table : tables) answer["tables"].push_back(to_json(table));
  // Letters beyond ASCII are escaped: a terminal obeys some of them, and names come from the model.
  return answer.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) + "\n";
}

void repeat_old_key(Json& result, const char* name, const char* old_name) { result[old_name] = Json(result.at(name)); }

Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json list_values(const Array& array) {
  if (array.storage == nullptr || !has_values(array.dtype)) return {};
  return dispatch(array.dtype, [&]<typename T>() {
    const T* next = array.data<T>();
    return nest_values(array.sizes, 0, next);
  });
}

}  // namespace lissome

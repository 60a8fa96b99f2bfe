#include "tests/fuzz/plan/plan_document.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

namespace lissome {

std::optional<PlanDocument> PlanDocument::parse(std::string_view text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  PlanDocument document{Json::parse(text.substr(0, end), nullptr, false),
                        Json::parse(text.substr(end + 1), nullptr, false)};
  if (!document.is_editable()) return std::nullopt;
  return document;
}

bool PlanDocument::is_editable() const {
  const auto has_lists = [](const Json& json, std::initializer_list<const char*> names) {
    return json.is_object() && std::all_of(names.begin(), names.end(), [&](const char* name) {
             return json.contains(name) && json.at(name).is_array();
           });
  };
  return has_lists(head, {"arrays", "extents"}) &&
         has_lists(plan, {"values", "steps", "inputs", "outputs", "arrays", "dimensions"}) &&
         !plan.at("values").empty() && !plan.at("steps").empty();
}

std::string PlanDocument::print() const {
  constexpr auto kReplace = Json::error_handler_t::replace;
  return head.dump(-1, ' ', false, kReplace) + "\n" + plan.dump(-1, ' ', false, kReplace);
}

int64_t PlanDocument::find_extent(const std::string& name) const {
  const Json& dimensions = plan["dimensions"];
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i].value("name", "") != name) continue;
    const Json& extents = head["extents"];
    return extents.empty() ? 2 : read_id(extents[i % extents.size()]);
  }
  return -1;
}

std::optional<Sizes> PlanDocument::sizes_of(int id) const {
  const Json& value = plan["values"].at(static_cast<size_t>(id));
  if (!value.contains("sizes")) return std::nullopt;
  Sizes sizes;
  for (const Json& size : value["sizes"]) {
    sizes.push_back(size.is_string() ? find_extent(size.get<std::string>()) : read_id(size));
    if (sizes.back() < 0) return std::nullopt;
  }
  return sizes;
}

std::string PlanDocument::dtype_of(int id) const {
  return plan["values"].at(static_cast<size_t>(id)).value("dtype", "f32");
}

int PlanDocument::add_value(std::string_view storage, std::string_view dtype, const Json& sizes) {
  const auto id = static_cast<int>(values().size());
  values().push_back({{"name", "m" + std::to_string(id)}, {"storage", storage}, {"dtype", dtype}, {"sizes", sizes}});
  return id;
}

int PlanDocument::add_constant(std::string_view dtype, const Sizes& sizes, uint64_t fill) {
  const size_t array = head["arrays"].size();
  head["arrays"].push_back(Json::array({dtype, sizes, fill}));
  plan["arrays"].push_back({{"name", std::to_string(array)}, {"packed", true}});
  const int id = add_value("constant", dtype, sizes);
  value(id)["array"] = plan["arrays"].size() - 1;
  return id;
}

void PlanDocument::add_output(int value) {
  plan["outputs"].push_back({{"name", "o" + std::to_string(plan["outputs"].size())}, {"value", value}});
}

std::vector<int> PlanDocument::list_defined(size_t position) const {
  std::vector<int> defined;
  const Json& all = plan["values"];
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string storage = all[i].value("storage", "");
    if (storage == "input" || storage == "constant" || storage == "state") defined.push_back(static_cast<int>(i));
  }
  for (size_t i = 0; i < position && i < plan["steps"].size(); ++i) {
    for (const Json& result : plan["steps"][i].at("results")) {
      const int id = read_id(result);
      if (id >= 0 && static_cast<size_t>(id) < all.size()) defined.push_back(id);
    }
  }
  return defined;
}

void PlanDocument::replace_operand(size_t first_step, int before, int after, FuzzRandom& random) {
  std::vector<Json*> found;
  for (size_t i = first_step; i < steps().size(); ++i) {
    for (Json& operand : steps()[i]["operands"])
      if (operand == before) found.push_back(&operand);
  }
  if (!found.empty()) *random.pick(found) = after;
}

}  // namespace lissome

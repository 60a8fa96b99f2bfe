// Edits of values, attributes and what stands around the steps; those of steps are in plan_step_edits.cpp.
#include "tests/fuzz/plan/plan_edits.h"

#include <iterator>

namespace lissome {
namespace {

constexpr const char* kDtypes[] = {"f32", "bf16", "i64", "u8",  "i8",  "bool", "f16",
                                   "f64", "i32",  "f32", "c64", "u16", "c32",  "f8_e5m2"};
constexpr const char* kStorages[] = {"input", "constant", "state", "arena", "view", "held"};
constexpr const char* kKinds[] = {"tensor", "integer", "floating", "boolean", "other"};
constexpr const char* kWords[] = {"relu", "gelu",    "none",    "sum",      "mean",     "max",    "min",   "reshape",
                                  "silu", "permute", "expand",  "split",    "merge",    "slice",  "clamp", "select",
                                  "tanh", "sigmoid", "average", "bilinear", "constant", "square", "",      "elu"};
constexpr const char* kOperations[] = {
    "load",        "constant",        "position",    "activate",   "negate",         "absolute", "exponential",
    "square_root", "reciprocal_root", "reciprocal",  "square",     "error_function", "round",    "round_bf16",
    "floor",       "logarithm",       "sine",        "cosine",     "logical_not",    "add",      "subtract",
    "multiply",    "divide",          "maximum",     "minimum",    "power",          "equal",    "unequal",
    "less",        "less_equal",      "logical_and", "logical_or", "select",         "slope",    "quantize"};

// "add 3 0 1 0 0 0": one word of it.
void change_instruction(Json& instruction, FuzzRandom& random) {
  std::vector<std::string> words = split(instruction.get<std::string>(), ' ');
  if (words.empty()) return;
  std::string& word = random.pick(words);
  if (&word == &words.front()) {
    word = random.pick(kOperations);
  } else {
    constexpr const char* kNumbers[] = {"0",  "1",  "2",  "3",   "4",   "5",    "6",   "9",  "10",
                                        "-1", "11", "12", "256", "nan", "1e30", "0.5", "-2", "1e-40"};
    word = kNumbers[random.below(random.once_in(2) ? std::size(kNumbers) : 5)];
  }
  instruction = join(words, " ");
}

void change_list(Json& list, FuzzRandom& random) {
  if (list.empty() || random.once_in(8)) {
    list.push_back(list.empty() ? Json(pick_size(random)) : Json(random.pick(list)));
  } else if (random.once_in(8)) {
    list.erase(random.below(list.size()));
  } else if (random.once_in(6)) {
    std::swap(random.pick(list), random.pick(list));
  } else {
    Json& item = random.pick(list);
    if (item.is_string()) change_instruction(item, random);
    if (item.is_number_integer()) change_integer(item, random);
  }
}

void replace_number(Json& json, int64_t before, int64_t after) {
  if (json.is_number_integer()) {
    if (json.get<int64_t>() == before) json = after;
  } else if (json.is_array()) {
    for (Json& item : json) replace_number(item, before, after);
  }
}

// The array of a constant follows its value.
void fit_array(PlanDocument& document, const Json& value) {
  if (!value.contains("array") || !value.contains("sizes")) return;
  const Json& rows = document.plan["arrays"];
  const int row = read_id(value["array"]);
  if (row < 0 || static_cast<size_t>(row) >= rows.size()) return;
  const auto at =
      static_cast<size_t>(std::strtoul(rows[static_cast<size_t>(row)].value("name", "").c_str(), nullptr, 10));
  if (at >= document.head["arrays"].size()) return;
  Json& array = document.head["arrays"][at];
  array[0] = value["dtype"];
  array[1] = value["sizes"];
}

}  // namespace

void change_attribute(PlanDocument& document, FuzzRandom& random) {
  Json& step = random.pick(document.steps());
  if (!step.contains("attributes") || step["attributes"].empty()) return;
  auto entry = step["attributes"].begin();
  std::advance(entry, static_cast<std::ptrdiff_t>(random.below(step["attributes"].size())));
  if (random.once_in(20)) return static_cast<void>(step["attributes"].erase(entry));
  Json& value = *entry;
  if (value.is_number_integer()) {
    change_integer(value, random);
  } else if (value.is_number()) {
    const Json numbers[] = {0.0, -1.5, 1e30, 1e-40, 0.5, Json{{"number", "inf"}}, Json{{"number", "nan"}}};
    value = random.pick(numbers);
  } else if (value.is_string()) {
    value = random.pick(kWords);
  } else if (value.is_array()) {
    change_list(value, random);
  }
}

void change_size_everywhere(PlanDocument& document, FuzzRandom& random) {
  const Json& chosen = random.pick(document.values());
  if (!chosen.contains("sizes") || chosen["sizes"].empty()) return;
  const Json& size = chosen.at("sizes").at(random.below(chosen.at("sizes").size()));
  if (!size.is_number_integer()) return;
  const auto before = size.get<int64_t>();
  const int64_t after = random.once_in(10) ? pick_number(random) : pick_size(random);
  for (Json& value : document.values())
    if (value.contains("sizes")) replace_number(value["sizes"], before, after);
  for (Json& array : document.head["arrays"]) replace_number(array[1], before, after);
  for (Json& step : document.steps()) {
    if (!step.contains("attributes")) continue;
    for (auto& [name, attribute] : step["attributes"].items()) replace_number(attribute, before, after);
  }
}

void change_value(PlanDocument& document, FuzzRandom& random) {
  Json& value = random.pick(document.values());
  const size_t what = random.below(12);
  if (what < 2) {
    value["dtype"] = random.pick(kDtypes);
  } else if (what < 7 && value.contains("sizes")) {
    change_list(value["sizes"], random);
  } else if (what == 7) {
    value["storage"] = random.pick(kStorages);
  } else if (what == 8) {
    value["kind"] = random.pick(kKinds);
  } else if (what == 9 && random.once_in(4)) {
    value.erase("dtype");
    value.erase("sizes");
  } else if (what == 10 && value.contains("array")) {
    value["array"] = random.below(document.plan["arrays"].size() + 1);
  } else {
    value["format"] = value.value("format", "row_major") == "row_major" ? "channels_last" : "row_major";
  }
  if (!random.once_in(4)) fit_array(document, value);
}

void change_dtype_everywhere(PlanDocument& document, FuzzRandom& random) {
  const Json& chosen = random.pick(document.values());
  if (!chosen.contains("dtype")) return;
  const std::string before = chosen["dtype"].get<std::string>();
  const char* after = kDtypes[random.below(random.once_in(3) ? std::size(kDtypes) : 6)];
  for (Json& value : document.values())
    if (value.value("dtype", "") == before) value["dtype"] = after;
  for (Json& array : document.head["arrays"])
    if (array[0] == before) array[0] = after;
}

void change_outputs(PlanDocument& document, FuzzRandom& random) {
  Json& outputs = document.plan["outputs"];
  const std::vector<int> defined = document.list_defined(document.steps().size());
  if (defined.empty()) return;
  if (outputs.empty() || (outputs.size() < 8 && random.once_in(2))) return document.add_output(random.pick(defined));
  Json& output = random.pick(outputs);
  if (random.once_in(6)) {
    output.erase("value");
    const Json literals[] = {nullptr, 1, 2.5, true, "text"};
    output["literal"] = random.pick(literals);
  } else if (random.once_in(4) && outputs.size() > 1) {
    outputs.erase(random.below(outputs.size()));
  } else {
    output["value"] = random.pick(defined);
  }
}

void change_dimensions(PlanDocument& document, FuzzRandom& random) {
  Json& dimensions = document.plan["dimensions"];
  if (dimensions.size() < 3 && random.once_in(4)) {
    const std::string name = "d" + std::to_string(dimensions.size());
    dimensions.push_back({{"name", name}, {"minimum", 0}, {"maximum", INT64_MAX}});
    document.head["extents"].push_back(pick_size(random));
  }
  if (dimensions.empty()) return;
  const size_t at = random.below(dimensions.size());
  const std::string name = dimensions[at].value("name", "");
  if (random.once_in(5)) {
    dimensions[at][random.once_in(2) ? "minimum" : "maximum"] = pick_number(random);
    return;
  }
  // A size in place of the name, or the name, or what can be computed from it, in place of a size.
  Json& value = random.pick(document.values());
  if (!value.contains("sizes") || value["sizes"].empty()) return;
  Json& size = value["sizes"][random.below(value["sizes"].size())];
  const std::string forms[] = {name,
                               "2*" + name,
                               name + "+1",
                               name + "*" + name,
                               name + "-3",
                               "(" + name + "+1)//2",
                               "Max(1, " + name + ")",
                               name + "%3",
                               name + "//0",
                               name + "**9",
                               "4611686018427387904*" + name};
  size = size.is_string() ? Json(pick_size(random)) : Json(forms[random.below(random.once_in(2) ? 11 : 3)]);
}

void change_writes(PlanDocument& document, FuzzRandom& random) {
  Json& writes = document.plan["writes"];
  if (!writes.is_array()) writes = Json::array();
  if (!writes.empty() && random.once_in(3)) return static_cast<void>(writes.erase(random.below(writes.size())));
  const std::vector<int> defined = document.list_defined(document.steps().size());
  if (defined.empty()) return;
  const int source = random.pick(defined), target = random.pick(defined);
  Json& value = document.value(target);
  if (value.value("storage", "") == "constant" && !random.once_in(4)) value["storage"] = "state";
  writes.push_back({{"target", target}, {"value", source}});
}

void change_head(PlanDocument& document, FuzzRandom& random) {
  Json& head = document.head;
  switch (random.below(6)) {
    case 0: head["level"] = random.below(6); break;
    case 1: head["threads"] = random.once_in(3) ? 2 : 1; break;
    case 2: head["runs"] = 1 + random.below(2); break;
    case 3: head["data"] = random.below(64); break;
    case 4:
      if (!head["extents"].empty()) random.pick(head["extents"]) = pick_size(random);
      break;
    default:
      if (!head["arrays"].empty()) random.pick(head["arrays"])[2] = random.below(64);
      break;
  }
}

void change_leaf(PlanDocument& document, FuzzRandom& random) { change_any_leaf(document.plan, random); }

}  // namespace lissome

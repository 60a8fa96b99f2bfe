// Twins that break a rule of a plan's tables: dimensions, inputs, outputs, arrays, values, the order of steps, writes,
// and the JSON form itself. Each names the seed that it needs.
#include <functional>
#include <string_view>

#include "tests/refuse/twins.h"

namespace lissome {
namespace {

struct TableRule {
  std::string_view seed, rule;
  std::vector<std::string> words;
  std::function<void(Twin&)> change;
};

size_t find_value(const Json& plan, std::string_view storage) {
  for (size_t i = 0; i < plan["values"].size(); ++i) {
    if (plan["values"][i]["storage"] == storage) return i;
  }
  throw_error(ErrorKind::internal, "the seed has no value that is ", storage);
}

Json& value_of(Twin& twin, std::string_view storage) { return twin.plan["values"][find_value(twin.plan, storage)]; }

// Of a field of the JSON form.
TableRule set_field(std::string_view rule, std::string pointer, Json value, std::vector<std::string> words) {
  return {"move", rule, std::move(words),
          [pointer, value](Twin& twin) { twin.plan[Json::json_pointer(pointer)] = value; }};
}

TableRule erase_field(std::string_view rule, std::string parent, std::string name) {
  return {"move", rule, {"'" + name + "' is not there"}, [parent, name](Twin& twin) {
            twin.plan[Json::json_pointer(parent)].erase(name);
          }};
}

std::string nest(size_t depth) { return std::string(depth, '(') + "n" + std::string(depth, ')'); }

std::vector<TableRule> list_form_rules() {
  return {
      set_field("format: another number", "/format", 4, {"format 4"}),
      set_field("format: text", "/format", "3", {"'format' is not an integer"}),
      erase_field("values: missing", "", "values"),
      erase_field("steps: missing", "", "steps"),
      erase_field("inputs: missing", "", "inputs"),
      erase_field("machine: missing", "", "machine"),
      erase_field("kernel: missing", "/steps/0", "kernel"),
      erase_field("storage: missing", "/values/0", "storage"),
      set_field("steps: no list", "/steps", 5, {"'steps' is not a list"}),
      set_field("operands: no list", "/steps/0/operands", 0, {"'operands' is not a list"}),
      set_field("operands: no integer", "/steps/0/operands/0", "0", {"'position' is not an integer"}),
      set_field("operands: negative", "/steps/0/operands/0", -7, {"'position' is not a position"}),
      set_field("operands: 41 bits", "/steps/0/operands/0", int64_t{1} << 40, {"'position' is not a position"}),
      set_field("operands: 64 bits", "/steps/0/operands/0", UINT64_MAX, {"63 bits"}),
      set_field("attributes: no object", "/steps/0/attributes", 5, {"'attributes' is not an object"}),
      set_field("attribute: a list of lists", "/steps/0/attributes/form", Json::parse("[[1]]"), {"attribute"}),
      set_field("attribute: true", "/steps/0/attributes/form", true, {"attribute"}),
      set_field("number: unknown", "/steps/0/attributes/form", {{"number", "infinite"}}, {"inf, -inf or nan"}),
      set_field("storage: unknown", "/values/0/storage", "disk", {"'storage' is 'disk', which is unknown"}),
      set_field("dtype: unknown", "/values/0/dtype", "f128", {"'dtype' is 'f128', which is unknown"}),
      set_field("kind: unknown", "/values/0/kind", "pointer", {"'kind' is 'pointer', which is unknown"}),
      set_field("format: unknown", "/values/0/format", "blocked", {"'format' is 'blocked', which is unknown"}),
      set_field("literal: an object", "/outputs/0", {{"name", "y"}, {"literal", Json::object()}},
                {"'number' is not there"}),
      set_field("origins: a choice that is not there", "/steps/0/origins",
                Json::parse(R"([["a", "b", "c", "d", "e", "f", 1000000]])"), {"choice"}),
      set_field("origins: five texts", "/steps/0/origins", Json::parse(R"([["a", "b", "c", "d", "e"]])"), {"origins"}),
      set_field("sizes: a fraction", "/values/0/sizes/1", 2.5, {"'size' is not an integer"}),
  };
}

std::vector<TableRule> list_dimension_rules() {
  return {
      set_field("dimension: empty range", "/dimensions/0/minimum", 9, {"dimension 'n'"}),
      set_field("dimension: negative", "/dimensions/0/minimum", -1, {"dimension 'n'"}),
      {"move",
       "dimension: twice",
       {"two dimensions are called 'n'"},
       [](Twin& twin) { twin.plan["dimensions"].push_back(twin.plan["dimensions"][0]); }},
      set_field("size: unknown name", "/values/0/sizes/0", "m", {"'m'"}),
      set_field("size: broken", "/values/0/sizes/0", "n +", {"'n +'"}),
      set_field("size: a word behind it", "/values/0/sizes/0", "n n", {"'n n'"}),
      set_field("size: nested deeply", "/values/0/sizes/0", nest(10'000), {"size"}),
      set_field("size: a number of 70 bits", "/values/0/sizes/0", "1180591620717411303424", {"size"}),
      set_field("size: negative", "/values/0/sizes/1", -6, {"-6"}),
      set_field("size: always negative", "/values/0/sizes/0", "n - 100", {"n - 100"}),
      set_field("size: division by zero", "/values/0/sizes/0", "n//0", {"n//0"}),
      set_field("size: overflow", "/values/0/sizes/0", "n*4611686018427387904*4", {"n*4611686018427387904*4"}),
      set_field("size: 1000 dimensions", "/values/0/sizes", Json(std::vector<int64_t>(1000, 1)), {"dimensions"}),
  };
}

std::vector<TableRule> list_value_rules() {
  const auto store = [](std::string_view rule, const char* storage) {
    return TableRule{"linear_f32", rule, {"cannot be the result of"}, [storage](Twin& twin) {
                       value_of(twin, "arena")["storage"] = storage;
                     }};
  };
  return {
      {"move",
       "value: made twice",
       {"is made twice"},
       [](Twin& twin) { twin.plan["steps"][1]["results"] = twin.plan["steps"][0]["results"]; }},
      {"move",
       "value: never made",
       {"is used before it is made"},
       [](Twin& twin) { twin.plan["steps"].erase(twin.plan["steps"].size() - 1); }},
      {"move",
       "value: made too late",
       {"is used before it is made"},
       [](Twin& twin) { std::reverse(twin.plan["steps"].begin(), twin.plan["steps"].end()); }},
      store("storage: a result that is an input", "input"),
      store("storage: a result that is held", "held"),
      {"linear_f32",
       "storage: a view that computes",
       {"view"},
       [](Twin& twin) { value_of(twin, "arena")["storage"] = "view"; }},
      {"move",
       "storage: a view in the arena",
       {"view"},
       [](Twin& twin) { value_of(twin, "view")["storage"] = "arena"; }},
      {"move",
       "storage: an input in the arena",
       {"is stored as something else"},
       [](Twin& twin) { value_of(twin, "input")["storage"] = "arena"; }},
      {"move", "input: position", {"there is no value"}, [](Twin& twin) { twin.plan["inputs"][0]["value"] = 99; }},
      {"linear_f32",
       "input: the same value twice",
       {"is made twice"},
       [](Twin& twin) { twin.plan["inputs"][1]["value"] = twin.plan["inputs"][0]["value"]; }},
      {"linear_f32",
       "input: the same name twice",
       {"two inputs are called"},
       [](Twin& twin) { twin.plan["inputs"][1]["name"] = twin.plan["inputs"][0]["name"]; }},
      {"move", "output: position", {"there is no value"}, [](Twin& twin) { twin.plan["outputs"][0]["value"] = 99; }},
      {"move",
       "output: the same name twice",
       {"two outputs are called"},
       [](Twin& twin) { twin.plan["outputs"][1]["name"] = twin.plan["outputs"][0]["name"]; }},
      {"move",
       "kernel: unknown",
       {"there is no kernel 'no_such_kernel'"},
       [](Twin& twin) { twin.plan["steps"][0]["kernel"] = "no_such_kernel"; }},
      {"move", "device: native steps elsewhere", {"cannot run on"}, [](Twin& twin) { twin.plan["device"] = "cuda:0"; }},
      {"move",
       "view: of nothing",
       {"is a view of nothing"},
       [](Twin& twin) { twin.plan["steps"][0]["operands"] = Json::array(); }},
  };
}

std::vector<TableRule> list_array_rules() {
  return {
      {"linear_f32", "array: position", {"has no array"}, [](Twin& twin) { value_of(twin, "constant")["array"] = 99; }},
      {"linear_f32", "array: missing", {"has no array"}, [](Twin& twin) { value_of(twin, "constant").erase("array"); }},
      {"linear_f32", "array: dtype", {"its array"}, [](Twin& twin) { value_of(twin, "constant")["dtype"] = "i32"; }},
      {"linear_f32",
       "array: sizes",
       {"its array"},
       [](Twin& twin) { value_of(twin, "constant")["sizes"].push_back(1); }},
      {"linear_f32",
       "array: sizes of a name",
       {"its array"},
       [](Twin& twin) { value_of(twin, "constant")["sizes"][0] = "n"; }},
      {"linear_f32", "array: kind", {"integer"}, [](Twin& twin) { value_of(twin, "constant")["kind"] = "integer"; }},
      {"linear_f32",
       "array: not in the file",
       {"the file holds no"},
       [](Twin& twin) { twin.plan["arrays"][0]["name"] = "nothing"; }},
      {"state", "state: dtype", {"its array"}, [](Twin& twin) { value_of(twin, "state")["dtype"] = "i32"; }},
      {"state", "state: sizes", {"its array"}, [](Twin& twin) { value_of(twin, "state")["sizes"] = {2, 3}; }},
      {"state",
       "write: to what is computed",
       {"neither state nor an input"},
       [](Twin& twin) { twin.plan["writes"][0]["target"] = find_value(twin.plan, "arena"); }},
      {"state", "write: to nothing", {"there is no value"}, [](Twin& twin) { twin.plan["writes"][0]["target"] = 99; }},
      {"state", "write: of nothing", {"there is no value"}, [](Twin& twin) { twin.plan["writes"][0]["value"] = 99; }},
      {"state",
       "write: of another size",
       {"write"},
       [](Twin& twin) { twin.plan["writes"][0]["value"] = find_value(twin.plan, "input"); }},
      {"state",
       "write: twice to the same",
       {"twice"},
       [](Twin& twin) { twin.plan["writes"].push_back(twin.plan["writes"][0]); }},
      {"state",
       "write: position missing",
       {"'target' is not there"},
       [](Twin& twin) { twin.plan["writes"][0].erase("target"); }},
  };
}

}  // namespace

void break_tables(const Seed& seed, Twins& twins) {
  for (const auto& list : {list_form_rules, list_dimension_rules, list_value_rules, list_array_rules}) {
    for (const TableRule& rule : list()) {
      if (rule.seed != seed.name) continue;
      Twin twin{"plan: " + std::string(rule.rule), rule.words, seed.json, {}, false};
      rule.change(twin);
      twins.add(seed, std::move(twin));
    }
  }
}

}  // namespace lissome

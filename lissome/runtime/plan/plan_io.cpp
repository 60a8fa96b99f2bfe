// The JSON form of a plan, format 3. Format 2, which is read too, has other names for some kernels. Every field of
// plan.h under its own name:
//   {"format": 3, "machine": {...}, "device": "cpu", "dimensions": [{"name", "minimum", "maximum"}],
//    "inputs": [{"name", "value"}], "outputs": [{"name", "value"} | {"name", "literal"}],
//    "input_tree", "output_tree",
//    "arrays": [{"name", "packed"}],             name: a member of weights, or of plan_arrays where packed
//    "values": [{"name", "storage", "kind", "dtype", "sizes": [64, "batch"], "format", "array"}],
//    "steps": [{"kernel", "attributes", "operands", "results", "origins", "program", "keeps_operands"}],
//    "writes": [{"target", "value"}], "choices": [...]}
// Fields at their default are left out. Attributes are a number, a text, or a list of one of both; JSON has no
// infinities and no NaN, which are {"number": "inf"}.
#include "lissome/runtime/plan/plan_io.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

namespace lissome {
namespace {

constexpr int kFormat = 3;
// Files of format 2 call some kernels otherwise.
constexpr int kFormatBefore = 2;
struct RenamedKernel {
  std::string_view before, now;
};
constexpr std::array kRenamedKernels = {
    RenamedKernel{"class_loss", "nll_loss"},
    RenamedKernel{"class_loss_gradient", "cross_entropy_gradient"},
    RenamedKernel{"fold_columns", "col2im"},
    RenamedKernel{"gather", "gather_rows"},
    RenamedKernel{"max_pool_places", "max_pool_indices"},
    RenamedKernel{"table_u8", "lut_u8"},
    RenamedKernel{"take", "gather"},
};

void rename_kernel(std::string& kernel) {
  const auto* renamed = std::ranges::find(kRenamedKernels, kernel, &RenamedKernel::before);
  if (renamed != kRenamedKernels.end()) kernel = renamed->now;
}

// ---- writing

template <typename T>
Json write_number(const T& value) {
  if constexpr (std::is_same_v<T, double>) {
    if (std::isnan(value)) return {{"number", "nan"}};
    if (std::isinf(value)) return {{"number", value > 0 ? "inf" : "-inf"}};
  }
  return Json(value);
}

Json write_attribute(const Attribute& attribute) {
  return std::visit([](const auto& value) { return write_number(value); }, attribute);
}

Json write_sizes(const std::vector<SizeExpression>& sizes) {
  Json list = Json::array();
  for (const SizeExpression& size : sizes) {
    if (const auto number = size.constant()) {
      list.push_back(*number);
    } else {
      list.push_back(size.text());
    }
  }
  return list;
}

Json write_value(const PlanValue& value) {
  Json json = {{"name", value.name}, {"storage", storage_name(value.storage)}};
  if (value.kind != PlanKind::tensor) json["kind"] = plan_kind_name(value.kind);
  if (value.sized) {
    json["dtype"] = dtype_name(value.dtype);
    json["sizes"] = write_sizes(value.sizes);
  }
  if (value.format != Format::row_major) json["format"] = format_name(value.format);
  if (value.array >= 0) json["array"] = value.array;
  return json;
}

Json write_step(const PlanStep& step) {
  Json json = {{"kernel", step.kernel}};
  for (const auto& [name, attribute] : step.attributes.entries) json["attributes"][name] = write_attribute(attribute);
  json["operands"] = step.operands;
  json["results"] = step.results;
  for (const PlanOrigin& origin : step.origins) {
    Json row = Json::array({origin.node, origin.op, origin.source, origin.code, origin.module, origin.module_type});
    if (origin.choice >= 0) row.push_back(origin.choice);
    json["origins"].push_back(std::move(row));
  }
  if (!step.program.empty()) json["program"] = step.program;
  if (step.keeps_operands) json["keeps_operands"] = true;
  return json;
}

Json write_output(const PlanOutput& output) {
  LISSOME_CHECK(output.leaves_after < 0, "the output ", quote(output.name), " leaves a run early");
  Json json = {{"name", output.name}};
  if (is_value(output.value)) {
    json["value"] = output.value;
    return json;
  }
  json["literal"] = nullptr;
  std::visit(
      [&](const auto& literal) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(literal)>, std::monostate>)
          json["literal"] = write_number(literal);
      },
      output.literal);
  return json;
}

Json write_choice(const PlanChoice& choice) {
  Json json = {{"node", choice.node}, {"op", choice.op}, {"chosen", choice.chosen}, {"reason", choice.reason}};
  for (const PlanCandidate& candidate : choice.candidates) {
    Json row = {{"name", candidate.name}};
    if (!candidate.refused.empty()) row["refused"] = candidate.refused;
    if (candidate.nanoseconds > 0) row["nanoseconds"] = candidate.nanoseconds;
    json["candidates"].push_back(std::move(row));
  }
  return json;
}

Json write_plan(const Plan& plan) {
  Json json = {{"format", kFormat}};
  json["machine"] = {
      {"processor", plan.machine.processor}, {"features", plan.machine.features}, {"threads", plan.machine.threads}};
  if (plan.device != "cpu") json["device"] = plan.device;
  json["dimensions"] = Json::array();
  for (const PlanDimension& dimension : plan.dimensions) {
    json["dimensions"].push_back(
        {{"name", dimension.name}, {"minimum", dimension.minimum}, {"maximum", dimension.maximum}});
  }
  for (const PlanRequirement& requirement : plan.requirements) {
    json["requirements"].push_back({{"text", requirement.text}, {"slack", requirement.slack.text()}});
  }
  json["inputs"] = Json::array();
  for (const PlanInput& input : plan.inputs) json["inputs"].push_back({{"name", input.name}, {"value", input.value}});
  json["outputs"] = Json::array();
  for (const PlanOutput& output : plan.outputs) json["outputs"].push_back(write_output(output));
  if (!plan.input_tree.empty()) json["input_tree"] = plan.input_tree;
  if (!plan.output_tree.empty()) json["output_tree"] = plan.output_tree;
  json["arrays"] = Json::array();
  for (const PlanArray& array : plan.arrays) json["arrays"].push_back({{"name", array.name}, {"packed", array.packed}});
  json["values"] = Json::array();
  for (const PlanValue& value : plan.values) json["values"].push_back(write_value(value));
  json["steps"] = Json::array();
  for (const PlanStep& step : plan.steps) json["steps"].push_back(write_step(step));
  for (const PlanWrite& write : plan.writes) {
    json["writes"].push_back({{"target", write.target}, {"value", write.value}});
  }
  for (const PlanChoice& choice : plan.choices) json["choices"].push_back(write_choice(choice));
  return json;
}

// ---- reading

class PlanReader {
 public:
  explicit PlanReader(const ModelFile& file) : file_(file), json_(parse_json(file.plan, "plan")) {}

  Plan read() {
    const auto format = get<int64_t>(json_, "format");
    if (format != kFormat && format != kFormatBefore) {
      throw_error(ErrorKind::invalid_input, "the plan has format ", format, ", this lissome reads ", kFormatBefore,
                  " and ", kFormat, ".\n      Make the plan anew: lissome prepare");
    }
    const Json& machine = field(json_, "machine");
    plan_.machine = {get<std::string>(machine, "processor"), get<std::string>(machine, "features"),
                     static_cast<int>(get<int64_t>(machine, "threads"))};
    if (json_.contains("device")) plan_.device = get<std::string>(json_, "device");
    for (const Json& row : list(json_, "dimensions")) {
      plan_.dimensions.push_back(
          {get<std::string>(row, "name"), get<int64_t>(row, "minimum"), get<int64_t>(row, "maximum")});
    }
    if (json_.contains("requirements")) {
      for (const Json& row : list(json_, "requirements")) {
        plan_.requirements.push_back(
            {get<std::string>(row, "text"), SizeExpression::parse(get<std::string>(row, "slack"), plan_.dimensions)});
      }
    }
    for (const Json& row : list(json_, "inputs")) {
      plan_.inputs.push_back({get<std::string>(row, "name"), value_id(field(row, "value"))});
    }
    for (const Json& row : list(json_, "outputs")) plan_.outputs.push_back(read_output(row));
    if (json_.contains("input_tree")) plan_.input_tree = get<std::string>(json_, "input_tree");
    if (json_.contains("output_tree")) plan_.output_tree = get<std::string>(json_, "output_tree");
    read_arrays();
    read_rows("values", plan_.values, [&](const Json& row) { return read_value(row); });
    read_rows("steps", plan_.steps, read_step);
    if (json_.contains("writes")) {
      for (const Json& row : list(json_, "writes")) {
        plan_.writes.push_back({value_id(field(row, "target")), value_id(field(row, "value"))});
      }
    }
    if (json_.contains("choices")) read_rows("choices", plan_.choices, read_choice);
    if (format == kFormatBefore) {
      for (PlanStep& step : plan_.steps) rename_kernel(step.kernel);
    }
    check_plan(plan_);
    return std::move(plan_);
  }

 private:
  [[noreturn]] static void refuse(std::string_view what, std::string_view wanted) {
    throw_error(ErrorKind::invalid_input, "plan: ", quote(what), " is not ", wanted);
  }
  static const Json& field(const Json& json, std::string_view name) {
    if (!json.is_object()) refuse(name, "inside an object");
    const auto found = json.find(std::string(name));
    if (found == json.end()) refuse(name, "there");
    return *found;
  }
  template <typename T>
  static T convert(const Json& json, std::string_view name) {
    if constexpr (std::is_same_v<T, std::string>) {
      if (!json.is_string()) refuse(name, "text");
    } else if constexpr (std::is_same_v<T, int64_t>) {
      if (!json.is_number_integer()) refuse(name, "an integer");
      if (json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
        refuse(name, "an integer of 63 bits");
      }
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) refuse(name, "true or false");
    } else {
      if (!json.is_number()) refuse(name, "a number");
    }
    return json.get<T>();
  }
  template <typename T>
  static T get(const Json& json, std::string_view name) {
    return convert<T>(field(json, name), name);
  }
  static const Json& list(const Json& json, std::string_view name) {
    const Json& found = field(json, name);
    if (!found.is_array()) refuse(name, "a list");
    return found;
  }
  // Frees each row once it is read, so that a long plan and its document are not in memory side by side.
  template <typename Row, typename Read>
  void read_rows(std::string_view name, std::vector<Row>& rows, Read read) {
    rows.reserve(list(json_, name).size());
    for (Json& row : json_[std::string(name)]) {
      rows.push_back(read(row));
      row = nullptr;
    }
  }
  static int position(const Json& json) {
    const auto number = convert<int64_t>(json, "position");
    if (number < -1 || number > INT32_MAX) refuse("position", "a position");
    return static_cast<int>(number);
  }
  static PlanValueId value_id(const Json& json) { return PlanValueId{position(json)}; }
  static std::vector<PlanValueId> value_ids(const Json& json, std::string_view name) {
    std::vector<PlanValueId> ids;
    for (const Json& item : list(json, name)) ids.push_back(value_id(item));
    return ids;
  }

  void read_arrays() {
    std::map<std::string, const Array*, std::less<>> weights, packed;
    for (const NamedArray& named : file_.weights) weights[named.name] = &named.array;
    for (const NamedArray& named : file_.plan_arrays) packed[named.name] = &named.array;
    for (const Json& row : list(json_, "arrays")) {
      PlanArray array{get<std::string>(row, "name"), get<bool>(row, "packed"), {}};
      const auto& members = array.packed ? packed : weights;
      const auto found = members.find(array.name);
      if (found == members.end()) {
        throw_error(ErrorKind::invalid_input, "plan: the file holds no ", array.packed ? "packed array " : "weight ",
                    quote(array.name));
      }
      array.array = *found->second;
      plan_.arrays.push_back(std::move(array));
    }
  }

  std::vector<SizeExpression> read_sizes(const Json& json) const {
    std::vector<SizeExpression> sizes;
    for (const Json& item : list(json, "sizes")) {
      if (item.is_string()) {
        sizes.push_back(SizeExpression::parse(item.get<std::string>(), plan_.dimensions));
      } else {
        sizes.emplace_back(convert<int64_t>(item, "size"));
      }
    }
    return sizes;
  }

  template <typename Enum>
  static Enum read_word(const Json& json, std::string_view name, std::optional<Enum> (*parse)(std::string_view)) {
    const auto text = get<std::string>(json, name);
    const auto found = parse(text);
    if (!found) throw_error(ErrorKind::invalid_input, "plan: ", quote(name), " is ", quote(text), ", which is unknown");
    return *found;
  }

  PlanValue read_value(const Json& row) const {
    PlanValue value;
    value.name = get<std::string>(row, "name");
    value.storage = read_word(row, "storage", parse_storage);
    if (row.contains("kind")) value.kind = read_word(row, "kind", parse_plan_kind);
    if (row.contains("dtype")) {
      value.sized = true;
      value.dtype = read_word(row, "dtype", parse_dtype);
      value.sizes = read_sizes(row);
    }
    if (row.contains("format")) value.format = read_word(row, "format", parse_format);
    if (row.contains("array")) value.array = position(row["array"]);
    return value;
  }

  static std::optional<double> read_double(const Json& json) {
    if (json.is_number_float()) return json.get<double>();
    if (!json.is_object()) return std::nullopt;
    const std::string word = get<std::string>(json, "number");
    if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (word != "inf" && word != "-inf") refuse("number", "inf, -inf or nan");
    return word == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  }

  static Attribute read_attribute(const Json& json) {
    if (json.is_string()) return json.get<std::string>();
    if (json.is_number_integer()) return convert<int64_t>(json, "attribute");
    if (const auto number = read_double(json)) return *number;
    if (!json.is_array()) refuse("attribute", "a number, a text or a list");
    if (!json.empty() && json.front().is_string()) {
      std::vector<std::string> texts;
      for (const Json& item : json) texts.push_back(convert<std::string>(item, "attribute"));
      return texts;
    }
    std::vector<int64_t> numbers;
    for (const Json& item : json) numbers.push_back(convert<int64_t>(item, "attribute"));
    return numbers;
  }

  static PlanOrigin read_origin(const Json& row) {
    if (!row.is_array() || row.size() < 6 || row.size() > 7)
      refuse("origins", "lists of six texts and the position of a choice");
    const auto text = [&](size_t i) { return convert<std::string>(row[i], "origin"); };
    PlanOrigin origin{text(0), text(1), text(2), text(3), text(4), text(5)};
    if (row.size() == 7) origin.choice = convert<int>(row[6], "origin");
    return origin;
  }

  static PlanStep read_step(const Json& row) {
    PlanStep step;
    step.kernel = get<std::string>(row, "kernel");
    if (row.contains("attributes")) {
      const Json& attributes = row["attributes"];
      if (!attributes.is_object()) refuse("attributes", "an object");
      for (const auto& [name, value] : attributes.items()) step.attributes.set(name, read_attribute(value));
    }
    step.operands = value_ids(row, "operands");
    step.results = value_ids(row, "results");
    if (row.contains("origins")) {
      for (const Json& item : list(row, "origins")) step.origins.push_back(read_origin(item));
    }
    if (row.contains("program")) step.program = get<std::string>(row, "program");
    if (row.contains("keeps_operands")) step.keeps_operands = get<bool>(row, "keeps_operands");
    return step;
  }

  static PlanOutput read_output(const Json& row) {
    PlanOutput output;
    output.name = get<std::string>(row, "name");
    if (row.contains("value")) {
      output.value = value_id(row["value"]);
      return output;
    }
    const Json& literal = field(row, "literal");
    if (literal.is_boolean()) {
      output.literal = literal.get<bool>();
    } else if (literal.is_number_integer()) {
      output.literal = convert<int64_t>(literal, "literal");
    } else if (const auto number = read_double(literal)) {
      output.literal = *number;
    } else if (literal.is_string()) {
      output.literal = literal.get<std::string>();
    } else if (!literal.is_null()) {
      refuse("literal", "a number, a text or null");
    }
    return output;
  }

  static PlanChoice read_choice(const Json& row) {
    PlanChoice choice{get<std::string>(row, "node"),
                      get<std::string>(row, "op"),
                      get<std::string>(row, "chosen"),
                      get<std::string>(row, "reason"),
                      {}};
    if (!row.contains("candidates")) return choice;
    for (const Json& item : list(row, "candidates")) {
      PlanCandidate candidate;
      candidate.name = get<std::string>(item, "name");
      if (item.contains("refused")) candidate.refused = get<std::string>(item, "refused");
      if (item.contains("nanoseconds")) candidate.nanoseconds = get<double>(item, "nanoseconds");
      choice.candidates.push_back(std::move(candidate));
    }
    return choice;
  }

  const ModelFile& file_;
  Json json_;
  Plan plan_;
};

}  // namespace

std::string print_plan(const Plan& plan) { return print_json(write_plan(plan)); }

void put_plan(ModelFile& file, const Plan& plan) {
  // A weight that the file keeps in another form (a part of a tied one, say) goes with the packed arrays.
  const auto is_kept = [&](const PlanArray& array) {
    return std::any_of(file.weights.begin(), file.weights.end(), [&](const NamedArray& weight) {
      return weight.name == array.name && weight.array.dtype == array.array.dtype &&
             weight.array.sizes == array.array.sizes;
    });
  };
  Plan written = plan;
  file.plan_arrays.clear();
  for (PlanArray& array : written.arrays) {
    array.packed = array.packed || !is_kept(array);
    if (array.packed) file.plan_arrays.push_back({array.name, array.array});
  }
  file.plan = print_plan(written);
}

ModelFile pack_plan(const Plan& plan) {
  ModelFile file;
  for (const PlanArray& array : plan.arrays) {
    if (!array.packed) file.weights.push_back({array.name, array.array});
  }
  put_plan(file, plan);
  return file;
}

// What the checks above let through to a container is the file's fault all the same.
Plan read_plan(const ModelFile& file) {
  try {
    return PlanReader(file).read();
  } catch (const Json::exception& error) {
    throw_error(ErrorKind::invalid_input, "plan: ", error.what());
  } catch (const std::logic_error& error) {  // out_of_range and length_error
    throw_error(ErrorKind::invalid_input, "plan: ", error.what());
  }
}

}  // namespace lissome

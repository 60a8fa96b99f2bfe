#include "tests/fuzz/plan/plan_case.h"

namespace lissome {
namespace {

std::optional<Sizes> read_sizes(const Json& json) {
  if (!json.is_array() || json.size() > 8) return std::nullopt;
  Sizes sizes;
  for (const Json& size : json) {
    if (!size.is_number_integer()) return std::nullopt;
    sizes.push_back(size.get<int64_t>());
  }
  return sizes;
}

bool read_array(const Json& json, FilledArray& array) {
  if (!json.is_array() || json.size() != 3 || !json[0].is_string() || !json[2].is_number_integer()) return false;
  const std::optional<Dtype> dtype = parse_dtype(json[0].get_ref<const std::string&>());
  const std::optional<Sizes> sizes = read_sizes(json[1]);
  if (!dtype || !sizes) return false;
  const std::optional<int64_t> bytes = count_bytes(*dtype, *sizes);
  if (!bytes || *bytes > kMostArrayBytes) return false;
  array = {*dtype, *sizes, json[2].get<uint64_t>()};
  return true;
}

}  // namespace

std::optional<PlanCase> read_plan_case(std::string_view text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const Json head = Json::parse(text.substr(0, end), nullptr, false);
  if (!head.is_object() || !head.contains("arrays") || !head.contains("extents")) return std::nullopt;
  const auto number = [&](const char* name) -> uint64_t {
    const auto found = head.find(name);
    return found != head.end() && found->is_number_integer() ? found->get<uint64_t>() : 0;
  };
  PlanCase result;
  result.level = number("level") % std::size(kLevels);
  result.threads = number("threads") == 2 ? 2 : 1;
  result.runs = number("runs") == 2 ? 2 : 1;
  result.data = number("data");
  const std::optional<Sizes> extents = read_sizes(head["extents"]);
  if (!extents || !head["arrays"].is_array() || head["arrays"].size() > 64) return std::nullopt;
  result.extents = *extents;
  for (const Json& row : head["arrays"]) {
    if (!read_array(row, result.arrays.emplace_back())) return std::nullopt;
  }
  result.plan = text.substr(end + 1);
  return result;
}

ModelFile make_model_file(const PlanCase& given) {
  ModelFile file;
  file.plan = given.plan;
  for (size_t i = 0; i < given.arrays.size(); ++i) {
    file.plan_arrays.push_back({std::to_string(i), make_filled(given.arrays[i])});
  }
  return file;
}

std::optional<Sizes> size_value(const Plan& plan, const PlanValue& value, const Sizes& extents) {
  DimensionValues dimensions;
  for (size_t i = 0; i < plan.dimensions.size(); ++i) {
    dimensions.push_back(extents.empty() ? 2 : extents[i % extents.size()]);
  }
  Sizes sizes;
  for (const SizeExpression& size : value.sizes) {
    const std::optional<int64_t> number = size.evaluate(dimensions);
    if (!number || *number < 0) return std::nullopt;
    sizes.push_back(*number);
  }
  return sizes;
}

}  // namespace lissome

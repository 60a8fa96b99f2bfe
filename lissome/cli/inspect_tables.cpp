#include "lissome/cli/inspect_tables.h"

#include <algorithm>
#include <map>
#include <set>

namespace lissome {
namespace {

std::string format_type(Dtype dtype, const std::vector<std::string>& sizes) {
  return std::string(dtype_name(dtype)) + "[" + join(sizes, ", ") + "]";
}

std::string describe_type(const ValueType& type) {
  if (type.kind != ValueKind::tensor) return "value";
  if (!type.sized) return std::string(dtype_name(type.dtype));
  std::vector<std::string> sizes;
  for (const Dimension& size : type.sizes) sizes.push_back(size.print());
  return format_type(type.dtype, sizes);
}

std::string describe_value(const Plan& plan, PlanValueId value) {
  if (!is_value(value)) return "literal";
  const PlanValue& described = plan.value(value);
  if (described.kind != PlanKind::tensor || !described.sized) return "value";
  std::vector<std::string> sizes;
  for (const SizeExpression& size : described.sizes) {
    sizes.push_back(size.constant() ? std::to_string(*size.constant()) : size.text());
  }
  return format_type(described.dtype, sizes);
}

template <typename Dimensions>
Table list_dimensions(const Dimensions& dimensions) {
  Table table{"Dimensions", {{"name", ""}, {"least", ""}, {"most", ""}}, {}};
  for (const auto& dimension : dimensions) {
    const bool open = dimension.maximum >= INT64_MAX / 2;
    table.rows.push_back({dimension.name, static_cast<double>(dimension.minimum),
                          open ? Cell("any") : Cell(static_cast<double>(dimension.maximum))});
  }
  return table;
}

Table list_counts(Table table, const std::map<std::string, int>& counts) {
  std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [name, count] : sorted) table.rows.push_back({name, static_cast<double>(count)});
  return table;
}

Table make_weights_table() {
  return {"Weights", {{"role", ""}, {"tensors", ""}, {"elements", ""}, {"bytes", "B"}}, {}};
}

struct WeightSum {
  int64_t tensors = 0, elements = 0, bytes = 0;
};

void add_row(Table& table, const char* role, const WeightSum& sum) {
  table.rows.push_back(
      {role, static_cast<double>(sum.tensors), static_cast<double>(sum.elements), static_cast<double>(sum.bytes)});
}

Table sum_weights(const Program& program) {
  WeightSum sums[3];
  std::set<const void*> seen;  // tied weights count once
  for (const Weight& weight : program.weights) {
    WeightSum& sum = sums[static_cast<size_t>(weight.role)];
    ++sum.tensors;
    const bool strided = weight.tensor.layout() == at::kStrided;
    if (strided && !seen.insert(weight.tensor.const_data_ptr()).second) continue;
    sum.elements += weight.tensor.numel();
    sum.bytes += static_cast<int64_t>(weight.tensor.numel()) * static_cast<int64_t>(weight.tensor.element_size());
  }
  Table table = make_weights_table();
  const char* names[] = {"parameters", "buffers", "constants"};
  for (size_t i = 0; i < 3; ++i) add_row(table, names[i], sums[i]);
  return table;
}

Table sum_weights(const Plan& plan) {
  WeightSum plain, packed;
  std::set<const void*> seen;
  for (const PlanArray& array : plan.arrays) {
    WeightSum& sum = array.packed ? packed : plain;
    ++sum.tensors;
    if (array.array.bytes() > 0 && !seen.insert(array.array.storage.get()).second) continue;
    sum.elements += array.array.elements();
    sum.bytes += array.array.bytes();
  }
  Table table = make_weights_table();
  add_row(table, "as in the model", plain);
  add_row(table, "packed for kernels", packed);
  return table;
}

}  // namespace

InspectTables describe_program(const Program& program) {
  InspectTables tables{.inputs = {"Inputs", {{"name", ""}, {"type", ""}}, {}},
                       .outputs = {"Outputs", {{"name", ""}, {"type", ""}}, {}},
                       .dimensions = list_dimensions(program.dimensions),
                       .weights = sum_weights(program),
                       .ops = {}};
  for (const ProgramInput& input : program.inputs) {
    tables.inputs.rows.push_back({input.name, describe_type(program.value(input.value).type)});
  }
  for (const ProgramOutput& output : program.outputs) {
    tables.outputs.rows.push_back(
        {output.name, output.value.is_value() ? describe_type(program.value(output.value.value()).type) : "literal"});
  }
  std::map<std::string, int> counts;
  for (const Node& node : program.nodes) ++counts[node.op.name()];
  tables.ops = list_counts({"Ops", {{"op", ""}, {"nodes", ""}}, {}}, counts);
  return tables;
}

InspectTables describe_plan(const Plan& plan) {
  InspectTables tables{.inputs = {"Inputs", {{"name", ""}, {"type", ""}}, {}},
                       .outputs = {"Outputs", {{"name", ""}, {"type", ""}}, {}},
                       .dimensions = list_dimensions(plan.dimensions),
                       .weights = sum_weights(plan),
                       .ops = {}};
  for (const PlanInput& input : plan.inputs) {
    tables.inputs.rows.push_back({input.name, describe_value(plan, input.value)});
  }
  for (const PlanOutput& output : plan.outputs) {
    tables.outputs.rows.push_back({output.name, describe_value(plan, output.value)});
  }
  std::map<std::string, int> counts;
  std::set<std::string> nodes;  // one node may be lowered to several steps
  for (const PlanStep& step : plan.steps) {
    for (const PlanOrigin& origin : step.origins) {
      if (nodes.insert(origin.node).second) ++counts[origin.op];
    }
  }
  tables.ops = list_counts({"Ops", {{"op", ""}, {"nodes", ""}}, {}}, counts);
  return tables;
}

}  // namespace lissome

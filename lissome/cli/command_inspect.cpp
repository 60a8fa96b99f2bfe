// lissome inspect: what is in a model.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "lissome/cli/command.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/program_file.h"
#include "lissome/runtime.h"

namespace lissome {
namespace {

std::string describe_type(const ValueType& type) {
  if (type.kind != ValueKind::tensor) return "value";
  std::vector<std::string> sizes;
  for (const Dimension& size : type.sizes) sizes.push_back(size.print());
  return std::string(dtype_name(type.dtype)) + (type.sized ? "[" + join(sizes, ", ") + "]" : "");
}

Table list_inputs(const Program& program) {
  Table table{"Inputs", {{"name", ""}, {"type", ""}}, {}};
  for (const ProgramInput& input : program.inputs) {
    table.rows.push_back({input.name, describe_type(program.value(input.value).type)});
  }
  return table;
}

Table list_outputs(const Program& program) {
  Table table{"Outputs", {{"name", ""}, {"type", ""}}, {}};
  for (const ProgramOutput& output : program.outputs) {
    table.rows.push_back(
        {output.name, output.value.is_value() ? describe_type(program.value(output.value.value()).type) : "literal"});
  }
  return table;
}

Table list_dimensions(const Program& program) {
  Table table{"Dimensions", {{"name", ""}, {"least", ""}, {"most", ""}}, {}};
  for (const NamedDimension& dimension : program.dimensions) {
    const bool open = dimension.maximum >= INT64_MAX / 2;
    table.rows.push_back({dimension.name, static_cast<double>(dimension.minimum),
                          open ? Cell("any") : Cell(static_cast<double>(dimension.maximum))});
  }
  return table;
}

Table count_ops(const Program& program) {
  std::map<std::string, int> counts;
  for (const Node& node : program.nodes) ++counts[node.op.name()];
  std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Table table{"Ops", {{"op", ""}, {"nodes", ""}}, {}};
  for (const auto& [op, count] : sorted) table.rows.push_back({op, static_cast<double>(count)});
  return table;
}

Table sum_weights(const Program& program) {
  int64_t elements[3] = {}, bytes[3] = {}, tensors[3] = {};
  std::map<const void*, bool> seen;  // tied weights count once
  for (const Weight& weight : program.weights) {
    const auto role = static_cast<size_t>(weight.role);
    ++tensors[role];
    const bool strided = weight.tensor.layout() == at::kStrided;
    if (strided && !seen.emplace(weight.tensor.const_data_ptr(), true).second) continue;
    elements[role] += weight.tensor.numel();
    bytes[role] += static_cast<int64_t>(weight.tensor.numel()) * static_cast<int64_t>(weight.tensor.element_size());
  }
  Table table{"Weights", {{"role", ""}, {"tensors", ""}, {"elements", ""}, {"bytes", "B"}}, {}};
  const char* names[] = {"parameters", "buffers", "constants"};
  for (size_t i = 0; i < 3; ++i) {
    table.rows.push_back(
        {names[i], static_cast<double>(tensors[i]), static_cast<double>(elements[i]), static_cast<double>(bytes[i])});
  }
  return table;
}

// The plan of a finished model; nothing where there is none.
std::optional<Plan> find_plan(const std::string& model) {
  if (detect_model_kind(model) != ModelKind::lissome) return std::nullopt;
  const ModelFile file = load_model_file(model);
  return file.plan.empty() ? std::nullopt : std::optional(read_plan(file));
}

Table count_kernels(const Plan& plan) {
  std::map<std::string, int> counts;
  for (const PlanStep& step : plan.steps) ++counts[step.kernel];
  Table table{"Plan", {{"kernel", ""}, {"steps", ""}}, {}};
  for (const auto& [kernel, count] : counts) table.rows.push_back({kernel, static_cast<double>(count)});
  return table;
}

std::string describe_plan(const Plan& plan) {
  const std::string other = describe_other_machine(plan.machine, std::min(plan.machine.threads, usable_threads()));
  return "Made for " + plan.machine.processor + ", " + std::to_string(plan.machine.threads) + " threads" +
         (other.empty() ? ", which is this machine.\n" : ".\nAnother machine: " + other + ".\n");
}

}  // namespace

int run_inspect(const std::vector<std::string>& arguments, Console& console) {
  Flags flags("inspect", "Inputs, outputs, dimensions, parameters, ops and program text of a model.");
  std::string model;
  bool json = false, text = false;
  flags.require("MODEL", model, ".pt2 or .lissome");
  flags.add("--text", text, "print the program text alone");
  flags.add("--json", json, "print the result as JSON");
  if (!flags.parse(arguments)) return 0;

  const Program program = open_program(model);
  const std::string printed = print_program(program);
  if (text && !json) {
    console.print(printed);
    return 0;
  }
  const Table tables[] = {list_inputs(program), list_outputs(program), list_dimensions(program), sum_weights(program),
                          count_ops(program)};
  const std::optional<Plan> plan = find_plan(model);
  if (json) {
    Json facts{{"inputs", to_json(tables[0])},
               {"outputs", to_json(tables[1])},
               {"dimensions", to_json(tables[2])},
               {"weights", to_json(tables[3])},
               {"ops", to_json(tables[4])},
               {"training", program.training},
               {"program", printed}};
    if (plan) {
      const PlanMachine& made = plan->machine;
      facts["plan"] = {
          {"processor", made.processor},
          {"features", made.features},
          {"threads", made.threads},
          {"other_machine", describe_other_machine(made, std::min(made.threads, usable_threads()))},
          {"kernels", to_json(count_kernels(*plan))},
      };
    }
    console.print(print_json(facts) + "\n");
    return 0;
  }
  std::string out;
  for (const Table& table : tables) {
    if (!table.rows.empty()) out += render_table(table, console.terminal()) + "\n";
  }
  if (plan) out += render_table(count_kernels(*plan), console.terminal()) + describe_plan(*plan);
  out += program.training ? "Exported in training form.\n" : "";
  console.print(out + "Program text: lissome inspect " + model + " --text\n");
  return 0;
}

}  // namespace lissome

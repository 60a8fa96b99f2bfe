// lissome inspect: shows what a model contains.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "lissome/cli/command.h"
#include "lissome/cli/flag_help.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/inspect_tables.h"
#include "lissome/cli/json_answer.h"
#include "lissome/cli/program_file.h"

namespace lissome {
namespace {

// A finished model has a plan, and a program if it was kept. Every other model has only a program.
struct Inspected {
  std::optional<Program> program;
  std::optional<Plan> plan;
};

Inspected open_model(const std::string& path) {
  Inspected model;
  if (detect_model_kind(path) == ModelKind::lissome) {
    const ModelFile file = load_model_file(path);
    if (!file.plan.empty()) model.plan = read_plan(file);
    if (file.program.empty()) return model;
  }
  model.program = open_program(path);
  return model;
}

Table count_kernels(const Plan& plan) {
  std::map<std::string, int> counts;
  for (const PlanStep& step : plan.steps) ++counts[step.kernel];
  Table table{"Plan", {{"kernel", ""}, {"steps", ""}}, {}};
  for (const auto& [kernel, count] : counts) table.rows.push_back({kernel, static_cast<double>(count)});
  return table;
}

std::string find_other_machine(const PlanMachine& made) {
  return describe_other_machine(made, std::min(made.threads, usable_threads()));
}

std::string describe_machine(const PlanMachine& made) {
  const std::string other = find_other_machine(made);
  return "Made for " + clean_text(made.processor) + ", " + std::to_string(made.threads) + " threads" +
         (other.empty() ? ", which is this machine.\n" : ".\nOther machine: " + clean_text(other) + ".\n");
}

Json list_facts(const std::string& path, const Inspected& model) {
  Json made_for, other_machine;  // null without a plan
  if (model.plan) {
    const PlanMachine& made = model.plan->machine;
    made_for = {{"machine", made.processor}, {"features", made.features}, {"threads", made.threads}};
    other_machine = or_null(find_other_machine(made));
  }
  return {{"model", path},
          {"training_form", model.program && model.program->training},
          {"made_for", made_for},
          {"other_machine", other_machine},
          {"program_text", model.program ? Json(print_program(*model.program)) : Json()}};
}

}  // namespace

int run_inspect(const std::vector<std::string>& arguments, Console& console) {
  Flags flags("inspect", "Shows the inputs, outputs, dimensions, parameters, ops and program text of a model.");
  std::string path;
  bool json = false, text = false;
  flags.require("MODEL", path, kModelHelp);
  flags.add("--text", text, "Print only the program text.");
  flags.add_json(json);
  flags.parse(arguments);

  if (text && !json) {
    console.print(print_program(open_program(path)));
    return 0;
  }
  const Inspected model = open_model(path);
  const InspectTables tables = model.program ? describe_program(*model.program) : describe_plan(*model.plan);
  if (json) {
    std::vector<Table> list = tables.list();
    if (model.plan) list.push_back(count_kernels(*model.plan));
    console.print(print_answer("inspect", list_facts(path, model), list));
    return 0;
  }
  std::string out;
  for (const Table& table : tables.list()) {
    if (!table.rows.empty()) out += render_table(table, console.terminal()) + "\n";
  }
  if (model.plan) {
    out += render_table(count_kernels(*model.plan), console.terminal()) + describe_machine(model.plan->machine);
  }
  if (model.program && model.program->training) out += "Exported in training form.\n";
  console.print(out + (model.program ? "Program text: lissome inspect " + path + " --text\n"
                                     : "The file holds no program: it was written without --keep-original.\n"));
  return 0;
}

}  // namespace lissome

// Writes small finished models that run, from which the tests of refusals make broken ones: a plan for each program
// text of a folder, in which lines "# force PATTERN KERNEL" choose kernels, and plans of transfers, which no text
// gives. Together they hold every kind of step.
//
//   write_seed_plans TEXTS FOLDER      FOLDER/<name>.lissome and its inputs, FOLDER/<name>.npz, for each text
//   write_seed_plans --kinds           every kind of step, one a line
#include <ATen/Context.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/rand.h>

#include <cstdio>
#include <filesystem>

#include "lissome/lower.h"
#include "lissome/lower/tensors.h"
#include "lissome/runtime/step/step_binder.h"
#include "tests/cases/case_program.h"

namespace {

using namespace lissome;

void write_text_seed(const std::string& text, const std::filesystem::path& to) {
  const CaseProgram made = read_case_program(text, CaseNumbers::positive);
  LowerOptions options;
  options.effort = Effort::fast;
  options.threads = 1;
  options.forced = made.forced;
  save_prepared(made.program, lower_program(made.program, options), to.string() + ".lissome");
  std::vector<NamedArray> inputs;
  for (size_t i = 0; i < made.inputs.size(); ++i)
    inputs.push_back({made.names[i], share_tensor(made.inputs[i].toTensor())});
  save_arrays(to.string() + ".npz", inputs);
}

PlanStep make_step(std::string kernel, PlanValueId operand, PlanValueId result) {
  PlanStep step;
  if (kernel == "elementwise")
    step.attributes.set("program", std::vector<std::string>{"load 0 0 0 0 0 0", "multiply 1 0 0 0 0 0"});
  step.kernel = std::move(kernel);
  step.operands = {operand}, step.results = {result};
  return step;
}

// y = x^2 that waits in the session's file, z = x^2 again. Runs in a session with a folder alone.
void write_transfer_seed(const std::filesystem::path& to) {
  Plan plan;
  plan.dimensions = {{"n", 2, 8}};
  const auto add_value = [&](std::string name, Storage storage) {
    return plan.add_value({std::move(name),
                           storage,
                           PlanKind::tensor,
                           Dtype::f32,
                           true,
                           {SizeExpression::parse("n", plan.dimensions), 16},
                           Format::row_major,
                           -1});
  };
  const PlanValueId x = add_value("x", Storage::input), y = add_value("y", Storage::arena),
                    z = add_value("z", Storage::arena), back = add_value("y.restored", Storage::arena),
                    ticket = add_value("y.ticket", Storage::arena);
  plan.values.back().dtype = Dtype::i64, plan.values.back().sizes = {};
  plan.inputs = {{"x", x}};
  plan.outputs = {{"y", back, {}}, {"z", z, {}}};
  plan.steps = {make_step("elementwise", x, y), make_step("offload", y, ticket), make_step("elementwise", x, z),
                make_step("reload", ticket, back)};
  ModelFile file;
  file.metadata = "{}";
  file.program = "input %x: f32[n, 16]\nreturn %x\n";
  put_plan(file, plan);
  save_model_file(to.string() + ".lissome", file);
  save_arrays(to.string() + ".npz", {{"x", share_tensor(at::rand({2, 16}))}});
}

void write_all(const std::filesystem::path& texts, const std::filesystem::path& folder) {
  register_ops();
  set_cache_folder("none");
  for (const CaseFile& file : read_case_files(texts.string())) {
    at::manual_seed(0);
    try {
      write_text_seed(file.text, folder / file.name);
    } catch (const Error& error) {
      throw_error(error.kind(), file.name, ": ", error.what());
    }
  }
  write_transfer_seed(folder / "transfers");
}

}  // namespace

int main(int count, char** words) {
  try {
    if (count == 2 && std::string(words[1]) == "--kinds") {
      for (const StepRow& row : step_rows()) std::printf("%s\n", std::string(row.kernel).c_str());
      return 0;
    }
    if (count != 3) throw_error(ErrorKind::usage, "write_seed_plans TEXTS FOLDER");
    write_all(words[1], words[2]);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return exit_code(error.kind());
  }
  return 0;
}

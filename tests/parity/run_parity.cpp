// Imports every parity case, interprets it on its inputs and compares with what Python's PyTorch answered; checks on
// the way that text and file round trips keep the program and that effects are what the table says. Prints the coverage
// table; exit status 1 when any case fails.
//
//   run_parity FOLDER [NAME...]      FOLDER holds one folder for each case
#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <set>

#include "case_runs.h"
#include "lissome/base.h"
#include "lissome/program.h"

namespace lissome {
namespace {

struct Row {
  std::string name, family, mode;
  bool dynamic = false;
  size_t nodes = 0;
  double error = 0;
  bool by_f64 = false;
  std::string failure;  // empty: passed
};

void note(Row& row, const std::string& what, const Agreement& agreement) {
  row.error = std::max(row.error, agreement.error);
  row.by_f64 = row.by_f64 || agreement.by_f64;
  require_agreement(what, agreement);
}

std::vector<std::pair<std::string, at::Tensor>> list_weights(const Program& program) {
  std::vector<std::pair<std::string, at::Tensor>> weights;
  for (const Weight& weight : program.weights) weights.emplace_back(weight.name, weight.tensor);
  return weights;
}

void check_text(const Program& program) {
  const std::string text = print_program(program);
  const Program parsed = parse_program(text, list_weights(program));
  if (!same_program(program, parsed))
    throw_error(ErrorKind::internal, "printed and parsed, the program is another:\n", diff_programs(program, parsed));
}

Program check_file(const Program& program) {
  const std::string path = (std::filesystem::temp_directory_path() / "lissome-parity.lissome").string();
  save_program(program, path);
  Program loaded = load_program(path);
  std::filesystem::remove(path);
  if (!same_program(program, loaded))
    throw_error(ErrorKind::internal, "saved and loaded, the program is another:\n", diff_programs(program, loaded));
  return loaded;
}

std::vector<c10::IValue> run_once(const Program& program, const ParityCase& parity, std::vector<c10::IValue> inputs,
                                  bool write_state) {
  InterpretOptions options;
  options.write_state = write_state;
  return run_program(program, parity, std::move(inputs), options);
}

void check_saved_numbers(const Program& program, const Program& loaded, const ParityCase& parity) {
  const auto& inputs = parity.runs.front().inputs;
  const auto ours = run_once(program, parity, copy_values(inputs), false);
  const auto theirs = run_once(loaded, parity, copy_values(inputs), false);
  for (size_t i = 0; i < ours.size(); ++i) {
    if (!ours[i].isTensor()) continue;
    const Agreement agreement = compare_values(theirs.at(i), ours[i], {});
    if (!agreement.agrees || agreement.error > 0)
      throw_error(ErrorKind::internal, "output ", i, " of the saved and loaded program: ", agreement.reason);
  }
}

void check_runs(const Program& program, const ParityCase& parity, Row& row) {
  for (size_t k = 0; k < parity.runs.size(); ++k) {
    const ParityRun& run = parity.runs[k];
    std::vector<c10::IValue> inputs = copy_values(run.inputs);
    const auto outputs = run_once(program, parity, inputs, true);
    if (outputs.size() != parity.outputs)
      throw_error(ErrorKind::internal, outputs.size(), " outputs instead of ", parity.outputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const c10::IValue f64 = run.f64.empty() ? c10::IValue() : run.f64[i];
      note(row, "output " + std::to_string(i) + " of run " + std::to_string(k),
           compare_values(outputs[i], run.expected[i], f64));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const c10::IValue& after = run.inputs_after[i].isNone() ? run.inputs[i] : run.inputs_after[i];
      note(row, "input " + program.inputs[i].name + " after run " + std::to_string(k),
           compare_values(inputs[i], after, {}));
    }
  }
}

void check_state(const Program& program, const ParityState& state, Row& row, bool after) {
  const auto& expected = after ? state.after : state.before;
  for (const auto& [name, tensor] : expected) {
    const Weight* weight = program.find_weight(name);
    if (weight == nullptr) continue;  // a buffer that the graph never reads
    c10::IValue f64;
    for (const auto& [other, wide] : state.f64) {
      if (after && other == name) f64 = wide;
    }
    note(row, "state " + name, compare_values(weight->tensor, tensor, f64));
  }
}

void check_case(const ParityCase& parity, Row& row) {
  const Program program = import_pt2(parity.model());
  row.nodes = program.nodes.size();
  check_text(program);
  bind_program(program, copy_values(parity.runs.front().inputs));
  check_saved_numbers(program, check_file(program), parity);
  if (parity.state) check_state(program, *parity.state, row, false);
  check_runs(program, parity, row);
  if (parity.state) check_state(program, *parity.state, row, true);
}

Row run_case(const std::string& folder) {
  Row row;
  row.name = std::filesystem::path(folder).filename().string();
  try {
    const ParityCase parity = read_parity_case(folder);
    row.family = parity.family;
    row.mode = parity.mode;
    row.dynamic = parity.dynamic;
    check_case(parity, row);
  } catch (const std::exception& error) {
    row.failure = describe_failure(error);
  }
  return row;
}

void print_row(const Row& row) {
  std::printf("%-42s %-16s %-6s %-8s %5zu  %9.1e  %s\n", row.name.c_str(), row.family.c_str(), row.mode.c_str(),
              row.dynamic ? "dynamic" : "static", row.nodes, row.error,
              !row.failure.empty() ? "FAILED"
              : row.by_f64         ? "ok (by float64)"
                                   : "ok");
  if (!row.failure.empty()) std::printf("    %s\n", row.failure.c_str());
  std::fflush(stdout);
}

void print_totals(const std::vector<Row>& rows) {
  std::map<std::string, std::pair<int, int>> families;  // passed, all
  int passed = 0, dynamic = 0, train = 0, by_f64 = 0;
  for (const Row& row : rows) {
    auto& family = families[row.family];
    family.first += row.failure.empty();
    ++family.second;
    passed += row.failure.empty();
    dynamic += row.dynamic;
    train += row.mode == "train";
    by_f64 += row.by_f64;
  }
  std::printf("\n");
  for (const auto& [name, counts] : families)
    std::printf("%-16s %3d of %3d\n", name.c_str(), counts.first, counts.second);
  std::printf(
      "%d of %zu cases agree with PyTorch; %d have dynamic dimensions, %d are in train mode, "
      "%d were judged by float64\n",
      passed, rows.size(), dynamic, train, by_f64);
}

}  // namespace
}  // namespace lissome

int main(int count, char** words) {
  using namespace lissome;
  if (count < 2) {
    std::fprintf(stderr, "usage: run_parity FOLDER [NAME...]\n");
    return 2;
  }
  at::set_num_threads(kExporterThreads);
  const std::vector<std::string> folders = list_case_folders(words[1], std::set<std::string>(words + 2, words + count));
  if (folders.empty()) {
    std::fprintf(stderr, "no cases in %s\n", words[1]);
    return 1;
  }
  std::printf("%-42s %-16s %-6s %-8s %5s  %9s  %s\n", "case", "family", "mode", "sizes", "nodes", "error", "verdict");
  std::vector<Row> rows;
  for (const std::string& folder : folders) {
    rows.push_back(run_case(folder));
    print_row(rows.back());
  }
  print_totals(rows);
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.failure.empty(); }) ? 0 : 1;
}

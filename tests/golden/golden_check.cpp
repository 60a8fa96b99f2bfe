#include "golden_check.h"

#include <ATen/core/ivalue.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "golden_numbers.h"
#include "lissome/pass.h"

namespace lissome {
namespace {

bool has_open_types(const Program& program) {
  return std::any_of(program.values.begin(), program.values.end(), [](const Value& value) {
    return value.type.kind == ValueKind::any || (value.type.kind == ValueKind::tensor && !value.type.sized);
  });
}

void fill_types(Program& program, const GoldenCase& golden) {
  if (has_open_types(program)) infer_types(program, make_inputs(program, golden, choose_bindings(program).front()));
}

// The declarations of a parsed program, so that `after` need not repeat them.
std::string print_declarations(const Program& program) {
  Program head = program;
  head.nodes.clear();
  head.writes.clear();
  head.outputs.clear();
  const std::string text = print_program(head);
  return text.substr(0, text.rfind("return"));
}

// Values that nodes make are numbered in their order, in bodies too; weights are sorted, their roles made one.
Program normalize(Program program) {
  remove_unread_weights(program);
  for (size_t i = 0; i < program.values.size(); ++i) program.values[i].name = "unread_" + std::to_string(i);
  for (const ProgramInput& input : program.inputs) program.value(input.value).name = input.name;
  for (Weight& weight : program.weights) {
    weight.role = WeightRole::parameter;
    program.value(weight.value).name = weight.name;
  }
  std::sort(program.weights.begin(), program.weights.end(),
            [](const Weight& left, const Weight& right) { return left.name < right.name; });
  int number = 0;
  for (Node& node : program.nodes) {
    node.origin = nullptr;
    for (auto& body : node.bodies) body = std::make_shared<const Program>(normalize(*body));
    for (const ValueId result : node.results) {
      if (result != ValueId::none) program.value(result).name = std::to_string(number++);
    }
  }
  return program;
}

Program parse_after(const GoldenCase& golden, const Program& before) {
  if (golden.unchanged()) return before;
  Program head = before;
  if (golden.pass == kToInferenceCase) head.training = false;
  Program program = parse_program(print_declarations(head) + golden.after);
  fill_types(program, golden);
  return program;
}

}  // namespace

std::vector<GoldenCase> read_golden_folder(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const bool golden = entry.path().extension() == ".txt" && entry.path().filename() != "CMakeLists.txt";
    if (golden) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<GoldenCase> cases;
  for (const auto& path : paths) {
    for (GoldenCase& one : read_golden_file(path.string())) cases.push_back(std::move(one));
  }
  return cases;
}

Program parse_before(const GoldenCase& golden) {
  Program program = parse_program(golden.before);
  fill_weights(program, golden);
  fill_types(program, golden);
  verify_program(program, Stage::imported);
  return program;
}

std::string check_golden(const GoldenCase& golden, const std::function<int(Program&)>& run, bool same_numbers) {
  const Program before = parse_before(golden);
  Program changed = before;
  const int rewrites = run(changed);
  verify_program(changed, Stage::optimized);
  fill_types(changed, golden);
  const std::string seen = print_program(normalize(changed)),
                    expected = print_program(normalize(parse_after(golden, before)));
  if (seen != expected) return diff_lines(expected, seen);
  if ((rewrites == 0) != golden.unchanged()) return std::to_string(rewrites) + " rewrites were counted";
  if (!same_numbers) return {};
  for (const DimensionBindings& bindings : choose_bindings(before)) {
    const std::string report = find_disagreement(before, changed, make_inputs(before, golden, bindings));
    if (!report.empty()) return report;
  }
  return {};
}

void check_all(const std::vector<GoldenCase>& cases, const std::function<std::string(const GoldenCase&)>& check) {
  for (const GoldenCase& golden : cases) {
    std::string report;
    try {
      report = check(golden);
    } catch (const std::exception& error) {
      report = error.what();
      report = report.substr(0, report.find("Exception raised from"));
    }
    INFO(golden.place());
    INFO(report);
    CHECK(report.empty());
  }
}

}  // namespace lissome

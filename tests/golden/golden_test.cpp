// Runs every golden case: parse, run the pass, verify, compare the text, then interpret both sides on the same numbers
// for several sizes; then the whole pipeline on the same programs. A pass without cases, or without a case that must
// stay as it is, fails here.
#include <ATen/core/ivalue.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>

#include "golden_case.h"
#include "golden_numbers.h"
#include "lissome/pass.h"

namespace lissome {
namespace {

constexpr std::string_view kToInference = "convert_to_inference";  // no pass of the pipeline, and no equal numbers

std::vector<GoldenCase> read_all_cases() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(LISSOME_GOLDEN_DIR)) {
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

Program parse_before(const GoldenCase& golden) {
  Program program = parse_program(golden.before);
  fill_weights(program, golden);
  fill_types(program, golden);
  verify_program(program, Stage::imported);
  return program;
}

Program parse_after(const GoldenCase& golden, const Program& before) {
  if (golden.unchanged()) return before;
  Program head = before;
  if (golden.pass == kToInference) head.training = false;
  Program program = parse_program(print_declarations(head) + golden.after);
  fill_types(program, golden);
  return program;
}

int run_pass(const GoldenCase& golden, Program& program) {
  if (golden.pass == kToInference) {
    const Program before = program;
    convert_to_inference(program);
    return same_program(before, program) ? 0 : 1;
  }
  const Pass* pass = find_pass(golden.pass);
  if (pass == nullptr) throw_error(ErrorKind::invalid_input, "there is no pass ", golden.pass);
  return pass->run(program);
}

std::string run_case(const GoldenCase& golden) {
  const Program before = parse_before(golden);
  Program changed = before;
  const int rewrites = run_pass(golden, changed);
  verify_program(changed, Stage::optimized);
  fill_types(changed, golden);
  const std::string seen = print_program(normalize(changed)),
                    expected = print_program(normalize(parse_after(golden, before)));
  if (seen != expected) return diff_lines(expected, seen);
  if ((rewrites == 0) != golden.unchanged()) return std::to_string(rewrites) + " rewrites were counted";
  if (golden.pass == kToInference) return {};
  for (const DimensionBindings& bindings : choose_bindings(before)) {
    const std::string report = find_disagreement(before, changed, make_inputs(before, golden, bindings));
    if (!report.empty()) return report;
  }
  return {};
}

// The whole pipeline on the same programs: numbers stay, and there is nothing left for a second time.
std::string run_pipeline_twice(const GoldenCase& golden) {
  const Program before = parse_before(golden);
  Program changed = before;
  run_pipeline(changed);
  for (const DimensionBindings& bindings : choose_bindings(before)) {
    const std::string report = find_disagreement(before, changed, make_inputs(before, golden, bindings));
    if (!report.empty()) return report;
  }
  std::string report;
  for (const PassResult& result : run_pipeline(changed)) {
    if (result.rewrites > 0) report += result.name + ":\n" + result.diff;
  }
  return report;
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

TEST_CASE("every golden case holds") { check_all(read_all_cases(), run_case); }

TEST_CASE("the whole pipeline keeps the numbers of every golden case, and is done after one time") {
  check_all(read_all_cases(), run_pipeline_twice);
}

TEST_CASE("every pass has cases, some where it fires and some where it must not") {
  std::map<std::string, std::pair<int, int>> counts;
  for (const GoldenCase& golden : read_all_cases()) {
    ++(golden.unchanged() ? counts[golden.pass].second : counts[golden.pass].first);
  }
  std::vector<std::string_view> names = {kToInference};
  for (const Pass& pass : list_passes()) names.push_back(pass.name);
  for (const std::string_view name : names) {
    INFO(name);
    CHECK(counts[std::string(name)].first >= 1);
    CHECK(counts[std::string(name)].second >= 1);
  }
}

TEST_CASE("the documentation tells of every pass, in the order of the table, with an example that holds") {
  const std::vector<GoldenCase> cases = read_documented_cases(LISSOME_PASSES_PAGE);
  check_all(cases, run_case);
  std::vector<std::string> told, names = {std::string(kToInference)};
  for (const GoldenCase& golden : cases) {
    CHECK(!golden.unchanged());
    told.push_back(golden.pass);
  }
  for (const Pass& pass : list_passes()) {
    if (std::find(names.begin(), names.end(), pass.name) == names.end()) names.emplace_back(pass.name);
  }
  CHECK(told == names);
}

}  // namespace
}  // namespace lissome

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
#include "golden_check.h"
#include "golden_numbers.h"
#include "lissome/pass.h"

namespace lissome {
namespace {

constexpr std::string_view kToInference = kToInferenceCase;  // no pass of the pipeline, and no equal numbers

std::vector<GoldenCase> read_all_cases() { return read_golden_folder(LISSOME_GOLDEN_DIR); }

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
  return check_golden(golden, [&](Program& program) { return run_pass(golden, program); }, golden.pass != kToInference);
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

TEST_CASE("the documentation describes every pass, in the order of the table, with an example that holds") {
  const std::vector<GoldenCase> cases = read_documented_cases(LISSOME_PASSES_PAGE);
  check_all(cases, run_case);
  std::vector<std::string> documented, names = {std::string(kToInference)};
  for (const GoldenCase& golden : cases) {
    CHECK(!golden.unchanged());
    documented.push_back(golden.pass);
  }
  for (const Pass& pass : list_passes()) {
    if (std::find(names.begin(), names.end(), pass.name) == names.end()) names.emplace_back(pass.name);
  }
  CHECK(documented == names);
}

}  // namespace
}  // namespace lissome

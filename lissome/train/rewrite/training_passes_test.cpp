// Each training pass turns the programs of its golden file into what stands there, and is switched off by its name.
#include "lissome/train/rewrite/training_passes.h"

#include <ATen/core/ivalue.h>
#include <doctest/doctest.h>

#include <map>

#include "lissome/lower.h"
#include "lissome/train/rewrite/split_scores.h"
#include "tests/expect_error.h"
#include "tests/golden/golden_check.h"

using namespace lissome;

namespace {

std::vector<GoldenCase> read_cases() { return read_golden_folder(LISSOME_SOURCE_DIR "/tests/golden/training"); }

// A pass that reads a plan gets that of the first kernels that take the nodes.
int run_alone(const TrainingPass& pass, Program& program) {
  if (pass.run != nullptr) return pass.run(program);
  LowerOptions options;
  options.effort = Effort::fast;
  return split_scores(program, lower_program(program, options), {});
}

}  // namespace

TEST_CASE("every golden case of a training pass holds") {
  check_all(read_cases(), [](const GoldenCase& golden) {
    const TrainingPass* pass = find_training_pass(golden.pass);
    if (pass == nullptr) return "there is no training pass " + golden.pass;
    const auto run = [&](Program& program) { return run_alone(*pass, program); };
    return check_golden(golden, run, golden.pass != "count_dropout");  // which draws other numbers
  });
}

TEST_CASE("every training pass has cases, some where it fires and some where it must not") {
  std::map<std::string, std::pair<int, int>> counts;
  for (const GoldenCase& golden : read_cases()) {
    ++(golden.unchanged() ? counts[golden.pass].second : counts[golden.pass].first);
  }
  for (const TrainingPass& pass : list_training_passes()) {
    CAPTURE(pass.name);
    CHECK(counts[std::string(pass.name)].first >= 1);
    CHECK(counts[std::string(pass.name)].second >= 1);
  }
}

TEST_CASE("a training pass that is switched off leaves programs as they are, the others tell what they changed") {
  for (const GoldenCase& golden : read_cases()) {
    const TrainingPass& pass = *find_training_pass(golden.pass);
    if (golden.unchanged() || pass.run == nullptr) continue;
    const Program before = parse_before(golden);
    Program kept = before, changed = before;
    std::vector<PassResult> off, on;
    run_training_passes(pass.stage, kept, {golden.pass}, off);
    run_training_passes(pass.stage, changed, {}, on);
    CAPTURE(golden.place());
    for (const PassResult& result : off) CHECK(result.name != golden.pass);
    const auto result = std::ranges::find(on, golden.pass, &PassResult::name);
    REQUIRE(result != on.end());
    CHECK(result->rewrites > 0);
    CHECK_FALSE(result->diff.empty());
    CHECK_FALSE(same_program(before, changed));
  }
}

TEST_CASE("a name that is no training pass is refused with the nearest one") {
  EXPECT_ERROR(usage, check_training_passes({"split_join"}), "split_joined");
  check_training_passes({"split_scores", "count_dropout"});
}

// What fuzz_plan runs: a plan and what a run of it needs, as text of two lines. The first is a head of JSON,
//   {"level": 2, "threads": 1, "runs": 1, "data": 7, "extents": [2], "arrays": [["f32", [4, 8], 0], ...]}
// the second the plan. Contents of arrays and inputs are made from numbers ("data", the last of each array), so that no
// checksum stands between a mutation and the gate.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "lissome/base.h"
#include "lissome/runtime/plan/plan.h"
#include "tests/fuzz/filled_array.h"

namespace lissome {

struct PlanCase {
  size_t level = 0;  // position in kLevels
  int threads = 1, runs = 1;
  uint64_t data = 0;
  Sizes extents;  // of the plan's dimensions, in turn
  std::vector<FilledArray> arrays;
  std::string_view plan;
};

// As mask_features() takes them.
inline constexpr const char* kLevels[] = {"none", "avx2", "avx512", "vnni", "bf16", "amx"};
// Beyond it a case is bound but not run: what an honest model of that size costs is no finding.
inline constexpr int64_t kMostElements = 1 << 14;

inline constexpr int64_t kMostArrayBytes = 1 << 19;

// Nothing when the text has not that form, or when an array has more than kMostArrayBytes.
std::optional<PlanCase> read_plan_case(std::string_view text);
// The file in memory, arrays named by their positions.
ModelFile make_model_file(const PlanCase& given);
// The sizes of a value at the case's extents; nothing when they do not follow.
std::optional<Sizes> size_value(const Plan& plan, const PlanValue& value, const Sizes& extents);

}  // namespace lissome

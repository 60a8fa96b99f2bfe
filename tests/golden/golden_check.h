// How golden cases are checked: the text that a rewrite leaves, and the numbers of both programs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "golden_case.h"
#include "lissome/program.h"

namespace lissome {

inline constexpr std::string_view kToInferenceCase = "convert_to_inference";

// All cases of the golden files (*.txt) in a folder, by file name.
std::vector<GoldenCase> read_golden_folder(const std::string& folder);

// The program of `before` with its weights filled, verified.
Program parse_before(const GoldenCase& golden);

// Empty when `run`, which returns its number of rewrites, turns `before` into `after` and, with `same_numbers`, both
// give the same numbers; else what differs.
std::string check_golden(const GoldenCase& golden, const std::function<int(Program&)>& run, bool same_numbers);

// A doctest check for each case: `check` returns what is wrong, or nothing.
void check_all(const std::vector<GoldenCase>& cases, const std::function<std::string(const GoldenCase&)>& check);

}  // namespace lissome

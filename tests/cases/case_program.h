// The program text of a case with numbers drawn for what it declares: tests lower and run it.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lissome/lower.h"
#include "lissome/program.h"

namespace lissome {

// What the floats of the inputs are.
enum class CaseNumbers : uint8_t {
  positive,  // from 0.1 to 1.1
  normal,    // of both signs; scales and variances stay positive
  special,   // normal, with NaN, infinities, zeros of both signs, large and very small numbers between
};

struct CaseProgram {
  Program program;
  std::vector<std::string> names;  // of the inputs
  std::vector<c10::IValue> inputs;
  std::vector<ForcedKernel> forced;  // of lines "# force PATTERN KERNEL"
};

struct CaseFile {
  std::string name, text;  // the name of the file without its ending
};
// The texts in a folder and the folders inside of it (*.txt), by name.
std::vector<CaseFile> read_case_files(const std::string& folder);

// Named sizes are at their smallest. Integers are small enough to index what the case indexes: from 0 to 3.
CaseProgram read_case_program(const std::string& text, CaseNumbers numbers);

}  // namespace lissome

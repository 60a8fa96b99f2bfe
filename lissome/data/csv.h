// Tables of numbers as text: a header row, then a sample a line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lissome/base.h"

namespace lissome {

struct CsvTable {
  Array features;  // f32 [samples, columns], without the label column
  std::vector<std::string> columns;
  std::optional<Array> labels;       // [samples]: i64 where all are whole numbers or words, else f32
  std::vector<std::string> classes;  // words that were numbered in alphabetical order
};

// Fields are separated by commas and may stand in quotes (RFC 4180). `label_column` may be empty: no labels. Throws
// usage (no such file or label column), invalid_input (no UTF-8), and with the line: a field that is no finite number,
// a line with more or fewer fields than the header, an open quote, no lines.
CsvTable load_csv(const std::string& path, const std::string& label_column);

}  // namespace lissome

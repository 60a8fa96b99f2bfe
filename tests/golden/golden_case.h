// Golden files: what a pass turns into what, and where it must leave a program alone. One file a pass, many cases a
// file:
//
//   # the activation is the only reader               a case begins with its title
//   pass: fuse_gelu                                   only where it is another pass than the file's name says
//   given: @half = 0.5                                contents of a weight or input; else drawn at random
//   before: %2 = aten::linear(%x: f32[N, 8], @w: f32[4, 8], none)
//           %3 = aten::relu(%2)
//   after:  %3 = lissome::linear_act(%x, @w, none, act="relu")        or `unchanged`
//
// A section goes on until the next keyword or title; lines that begin with `//` are remarks. Types are needed for
// inputs and weights alone, where `before` first mentions them; `after` mentions types of new weights only. Contents
// are a number (all elements), a list ([1, 2, 3], row by row), a range (2..5, integers both ends included, other
// numbers uniform) or another weight's (@other).
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lissome {

struct GoldenCase {
  std::string file, title, pass;
  int line = 0;                                            // of the title
  std::vector<std::pair<std::string, std::string>> given;  // "@half", "0.5"
  std::string before, after;
  bool unchanged() const { return after == "unchanged"; }
  std::string place() const;  // fuse_gelu.txt:12: the title
};

// Throws invalid_input with file and line.
std::vector<GoldenCase> read_golden_file(const std::string& path);
// The examples of documentation in markdown: each heading `### pass` begins a case, whose sections are indented by
// four.
std::vector<GoldenCase> read_documented_cases(const std::string& path);

}  // namespace lissome

// Imports the files that it is given, one line of answer for each: exit code, tab, error text. For the tests of
// refusals: many files in one process.
//
//   import_file FILE...
#include <algorithm>
#include <cstdio>
#include <string>

#include "lissome/program.h"

namespace {

std::string first_lines(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

int import_one(const std::string& path, std::string* text) {
  try {
    const lissome::Program program = lissome::import_pt2(path);
    *text = std::to_string(program.nodes.size()) + " nodes";
    return 0;
  } catch (const lissome::Error& error) {
    *text = first_lines(error.what());
    return lissome::exit_code(error.kind());
  }
}

}  // namespace

int main(int count, char** words) {
  int worst = 0;
  for (int i = 1; i < count; ++i) {
    std::string text;
    const int code = import_one(words[i], &text);
    std::printf("%d\t%s\n", code, text.c_str());
    std::fflush(stdout);
    worst = std::max(worst, code);
  }
  return worst;
}

// Diffs: hunks as in `diff -u`, stable when values were renumbered; checked by applying them.
#include <doctest/doctest.h>

#include <random>
#include <sstream>

#include "lissome/program.h"

namespace lissome {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// What `patch` would do; empty optional parts are checked on the way.
std::string apply_diff(const std::string& before, const std::string& diff) {
  const auto left = lines_of(before);
  std::string result;
  size_t at = 0;
  for (const std::string& line : lines_of(diff)) {
    if (line.starts_with("@@")) {
      size_t start = std::stoul(line.substr(4));
      const size_t count = std::stoul(line.substr(line.find(',') + 1));
      if (count > 0) --start;
      for (; at < start; ++at) result += left.at(at) + "\n";
    } else if (line[0] == '+') {
      result += line.substr(1) + "\n";
    } else {
      REQUIRE(left.at(at) == line.substr(1));
      if (line[0] == ' ') result += left[at] + "\n";
      ++at;
    }
  }
  for (; at < left.size(); ++at) result += left[at] + "\n";
  return result;
}

TEST_CASE("a diff is a hunk with its context") {
  CHECK(diff_lines("a\nb\n", "a\nb\n").empty());
  CHECK(diff_lines("", "a\n") == "@@ -0,0 +1,1 @@\n+a\n");
  CHECK(diff_lines("a\n", "") == "@@ -1,1 +0,0 @@\n-a\n");
  CHECK(diff_lines("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n") ==
        "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST_CASE("applying the diff of random texts gives the second, by few lines") {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::string left, right;
    int changes = 0;
    for (int i = 0; i < 40; ++i) {
      const std::string line = std::to_string(random() % 12) + "\n";
      const int choice = static_cast<int>(random() % 12);
      if (choice != 0) left += line;
      if (choice != 1) right += line;
      if (choice == 2) right += "new\n";
      changes += choice <= 2;
    }
    const std::string diff = diff_lines(left, right);
    REQUIRE(apply_diff(left, diff) == right);
    int shown = 0;
    for (const std::string& line : lines_of(diff)) shown += line[0] == '+' || line[0] == '-';
    REQUIRE(shown <= changes);
  }
}

TEST_CASE("texts that share nothing are shown as replaced") {
  std::string left, right;
  for (int i = 0; i < 5000; ++i) {
    left += "a" + std::to_string(i) + "\n";
    right += "b" + std::to_string(i) + "\n";
  }
  CHECK(apply_diff(left, diff_lines(left, right)) == right);
}

TEST_CASE("renumbered values do not show") {
  const Program before = parse_program(
      "%0 = aten::relu(%x: f32[2, 2])\n%1 = aten::tanh(%0)\n%2 = aten::exp(%1)\n%3 = aten::neg(%2)\nreturn %3");
  const Program renumbered = parse_program(
      "%7 = aten::relu(%x: f32[2, 2])\n%8 = aten::tanh(%7)\n%0 = aten::exp(%8)\n%1 = aten::neg(%0)\nreturn %1");
  CHECK(diff_programs(before, before).empty());
  CHECK(diff_programs(before, renumbered).empty());
  const Program changed = parse_program(
      "%7 = aten::relu(%x: f32[2, 2])\n%8 = aten::tanh(%7)\n%0 = aten::sin(%8)\n%1 = aten::neg(%0)\nreturn %1");
  const std::string diff = diff_programs(before, changed);
  CAPTURE(diff);
  CHECK(diff.find("-%2 = aten::exp(%1)") != std::string::npos);
  CHECK(diff.find("= aten::sin(%1)") != std::string::npos);
  CHECK(diff.find(" %0 = aten::relu(%x)") != std::string::npos);
}

TEST_CASE("a pass that keeps names gives a small diff") {
  const Program before = parse_program(
      "%a = aten::linear(%x: f32[2, 2], @w: f32[2, 2])\n%b = aten::relu(%a)\n%c = aten::neg(%b)\nreturn %c");
  const Program after = parse_program("%b = aten::linear(%x: f32[2, 2], @w: f32[2, 2])\n%c = aten::neg(%b)\nreturn %c");
  CHECK(diff_programs(before, after) ==
        "@@ -1,6 +1,5 @@\n input %x: f32[2, 2]\n parameter @w: f32[2, 2]\n-%a = aten::linear(%x, @w)\n"
        "-%b = aten::relu(%a)\n+%b = aten::linear(%x, @w)\n %c = aten::neg(%b)\n return %c\n");
}

}  // namespace
}  // namespace lissome

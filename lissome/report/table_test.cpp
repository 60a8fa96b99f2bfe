#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lissome/report/report_test_records.h"

namespace lissome {
namespace {

std::vector<std::string> lines_of(const std::string& text) { return split(text, '\n'); }

TEST_CASE("cells take the unit of their column") {
  CHECK(format_cell(0.00421, "s") == "4.21 ms");
  CHECK(format_cell(1048576.0, "B") == "1.0 MiB");
  CHECK(format_cell(0.125, "%") == "12.50 %");
  CHECK(format_cell(2.5, "x") == "2.50x");
  CHECK(format_cell(3.0, "") == "3");
  CHECK(format_cell(std::nan(""), "s") == "-");
  CHECK(format_cell("text", "s") == "text");
}

TEST_CASE("columns line up, numbers to the right") {
  const Table table{"Title", {{"name", ""}, {"time", "s"}}, {{"a", 0.001}, {"longer", 0.1}}};
  const std::vector<std::string> lines = lines_of(render_table(table));
  std::vector<std::string> rows;
  for (const std::string& line : lines) {
    if (line.find(" ms") != std::string::npos) rows.push_back(line);
  }
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].size() == rows[1].size());
  CHECK(rows[0].starts_with("a "));
  CHECK(rows[1].starts_with("longer  "));
  CHECK(lines[0].find("Title") != std::string::npos);
}

TEST_CASE("wide characters count as they are shown, control characters are not sent to the terminal") {
  const Table table{"", {{"name", ""}, {"n", ""}}, {{"模型", 1.0}, {"four", 2.0}}};
  const std::vector<std::string> lines = lines_of(render_table(table));
  CHECK(lines.size() >= 3);
  const Table hostile{"", {{"name", ""}}, {{std::string("\x1b[31mred")}}};
  CHECK(render_table(hostile).find('\x1b') == std::string::npos);
}

TEST_CASE("long text wraps inside the width") {
  const Table table{"", {{"step", ""}, {"why", ""}}, {{"int8", std::string(60, 'a') + " " + std::string(300, 'b')}}};
  for (const std::string& line : lines_of(render_table(table, {.width = 80}))) CHECK(line.size() <= 80);
}

TEST_CASE("a column below takes lines of its own, across the width, where it has text") {
  const Table table{"", {{"node", ""}, {"n", ""}, {"others", "", true}}, {{"a", 1.0, "one or two"}, {"b", 2.0, ""}}};
  const std::vector<std::string> lines = lines_of(render_table(table, {.width = 40}));
  CHECK(lines == std::vector<std::string>{"node  n", "a     1", "    others: one or two", "b     2", ""});
  const Table wide{"", {{"node", ""}, {"why", "", true}}, {{"a", std::string(30, 'x') + " " + std::string(30, 'y')}}};
  for (const std::string& line : lines_of(render_table(wide, {.width = 40}))) CHECK(line.size() <= 40);
}

TEST_CASE("columns that do not fit stand below, behind the first column again") {
  Table table{"", {{"model", ""}}, {{"a/long/path/of/a/model.lissome"}, {"b.pt2"}}};
  for (int i = 0; i < 12; ++i) {
    table.columns.push_back({"figure " + std::to_string(i), "s"});
    for (auto& row : table.rows) row.push_back(0.001 * (i + 1));
  }
  for (const int width : {40, 80, 120}) {
    const std::string text = render_table(table, {.width = width});
    for (const std::string& line : lines_of(text)) CHECK(line.size() <= static_cast<size_t>(width));
    for (int i = 0; i < 12; ++i) CHECK(text.find("figure " + std::to_string(i)) != std::string::npos);
    CHECK(text.find("12.0 ms") != std::string::npos);
  }
}

TEST_CASE("a column without content is left out") {
  const Table table{"", {{"a", ""}, {"quality", ""}, {"note", ""}, {"n", ""}}, {{"x", std::nan(""), "", 1.0}}};
  CHECK(lines_of(render_table(table)) == std::vector<std::string>{"a  n", "x  1", ""});
}

TEST_CASE("colour only when asked for") {
  const Table table{"T", {{"a", ""}}, {{"b"}}};
  CHECK(render_table(table).find('\x1b') == std::string::npos);
  CHECK(render_table(table, {.color = true}).find('\x1b') != std::string::npos);
}

TEST_CASE("a table as JSON keeps raw numbers") {
  const Json json = to_json(Table{"T", {{"a", "s"}, {"b", ""}}, {{0.5, "x"}}});
  CHECK(print_json(json) ==
        R"({"title":"T","columns":[{"name":"a","unit":"s"},{"name":"b","unit":""}],"rows":[[0.5,"x"]]})");
  const Json odd = to_json(Table{"T", {{"a", "s"}}, {{std::nan("")}, {-HUGE_VAL}}});
  CHECK(print_json(odd["rows"]) == R"([[null],["-Infinity"]])");
}

TEST_CASE("a renamed column is repeated in JSON under its old name, and shown once in text") {
  const Table table{"T", {{"a", "s", false, "old"}, {"b", ""}}, {{0.5, "x"}, {std::nan("")}}};
  CHECK(print_json(to_json(table)) ==
        R"({"title":"T","columns":[{"name":"a","unit":"s"},{"name":"b","unit":""},)"
        R"({"name":"old","unit":"s","old_name_of":"a"}],"rows":[[0.5,"x",0.5],[null,null,null]]})");
  CHECK(render_table(table).find("old") == std::string::npos);
}

TEST_CASE("an optimization for a terminal opens with the answer") {
  OptimizationRecord record = make_odd_record();
  record.answer = "2.47 times faster";
  const std::string text = render_terminal(record);
  CHECK(text.starts_with("2.47 times faster\n"));
  for (const char* part : {"Goals", "latency: compression", "blocker: ", "Steps", "kept", "undone", "left out",
                           "Time by layer", "command  lissome optimize"}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("the layer table holds the slowest first") {
  const Table table = make_layer_table(make_odd_record(), 3);
  REQUIRE(table.rows.size() == 3);
  CHECK(std::get<double>(table.rows[0][3]) > std::get<double>(table.rows[1][3]));
}

}  // namespace
}  // namespace lissome

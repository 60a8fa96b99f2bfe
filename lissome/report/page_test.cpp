// A page of odd and missing numbers is a page all the same.
#include "lissome/report/page.h"

#include <doctest/doctest.h>

#include <limits>

#include "lissome/report/report_test_records.h"

namespace lissome {
namespace {

PageChart make_chart_record(size_t points) {
  PageChart chart{"Loss " + kOdd, "by step", {}};
  for (const char* name : {"train", "validation", "other", "one too many"}) {
    Series series{name, "step", "", {}, {}};
    for (size_t i = 0; i < points; ++i) {
      series.x.push_back(static_cast<double>(i));
      series.y.push_back(i % 7 == 0 ? std::numeric_limits<double>::quiet_NaN() : 1.0 / static_cast<double>(1 + i));
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_CASE("curves have at most three lines, no NaN, and the page stays small") {
  ReportPage page{.title = kOdd,
                  .answer = kOdd,
                  .tiles = {{"Loss", "0.1", kOdd}},
                  .charts = {make_chart_record(100'000)},
                  .notes = {kOdd},
                  .tables = {},
                  .facts = {{"Model", kOdd}},
                  .command = "lissome train"};
  const std::string html = render_page(page);
  CHECK(html.size() < 300'000);
  CHECK(count(html, "<path") == 3);
  CHECK(count(html, "nan") == 0);
  CHECK(count(html, "<img") == 0);
  CHECK(html.ends_with("</html>\n"));
}

TEST_CASE("a curve of one point is a dot") {
  const std::string html = render_page({.charts = {make_chart_record(2)}});  // of which the first is no number
  CHECK(count(html, " point\" d=\"M500") == 3);
  CHECK(count(html, "h0\"/>") == 3);
  CHECK(count(render_page({.charts = {make_chart_record(3)}}), "h0\"/>") == 0);
}

TEST_CASE("long tables end with their last rows, charts without points are left out") {
  Table table{"Epochs", {{"epoch", ""}}, {}};
  for (int i = 0; i < 60; ++i) table.rows.push_back({static_cast<double>(i)});
  const std::string html = render_page({.charts = {make_chart_record(0)}, .tables = {table}});
  CHECK(count(html, "<tr>") == 51);
  CHECK(html.find("<td>59</td>") != std::string::npos);
  CHECK(html.find("10 rows before these") != std::string::npos);
  CHECK(count(html, "<svg") == 0);
}

}  // namespace
}  // namespace lissome

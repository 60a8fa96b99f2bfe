#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

#include "lissome/report/report_test_records.h"

namespace lissome {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

TEST_CASE("a page stays small and whole whatever the record holds") {
  const std::string html = render_html(make_odd_record());
  CHECK(html.size() < 300'000);
  CHECK(html.starts_with("<!doctype html>"));
  CHECK(html.ends_with("</html>\n"));
  CHECK(is_utf8(html));
  CHECK(std::none_of(html.begin(), html.end(), [](char c) { return c >= 0 && c < ' ' && c != '\n'; }));
  for (const char* name : {"section", "article", "details", "ul", "dl", "svg", "figure", "code"}) {
    CAPTURE(name);
    CHECK(count(html, std::string("<") + name + ">") + count(html, std::string("<") + name + " ") ==
          count(html, std::string("</") + name + ">"));
  }
  // A browser looks at it in tests/report.
  std::ofstream(LISSOME_BINARY_DIR "/tests/odd_report.html", std::ios::binary) << html;
}

TEST_CASE("what users name is text, never markup") {
  const std::string html = render_html(make_odd_record());
  CHECK(count(html, "<img") == 0);
  CHECK(count(html, "&lt;img src=x onerror=&quot;alert(1)&quot;&gt; a &amp; b Ünïcødé 模型") > 10);
  CHECK(count(html, "<script") == 0);
  CHECK(count(html, "http") == 0);
}

TEST_CASE("the answer is the first heading, and every goal and step is shown") {
  OptimizationRecord record = make_odd_record();
  record.answer = "2.47 times faster";
  const std::string html = render_html(record);
  CHECK(html.find("<h1>2.47 times faster</h1>") < html.find("<h2>"));
  CHECK(count(html, "class=\"met\"") == 2);
  CHECK(count(html, "class=\"missed\"") == 1);
  CHECK(count(html, "<article class=\"step kept\"") == 10);
  CHECK(count(html, "<article class=\"step undone\"") == 10);
  CHECK(count(html, "<article class=\"step left\"") == 10);
  for (const char* kind : {"after", "before", "third"})
    CHECK(count(html, "<path class=\"point " + std::string(kind) + "\"") == 1);
  CHECK(count(html, "a file of 3.0 MiB, ") == 1);
  CHECK(count(html, ": the result") == 1);
  CHECK(count(html, ": loses more than allowed") == 1);
}

TEST_CASE("many layers become the slowest ones and a rest") {
  const std::string html = render_html(make_odd_record());
  CHECK(html.find("encoder.layer.0.attention") != std::string::npos);
  CHECK(html.find("360 smaller layers together") != std::string::npos);
}

TEST_CASE("an empty record is a page too") {
  const std::string html = render_html({});
  CHECK(html.ends_with("</html>\n"));
  CHECK(count(html, "nan") == 0);
  CHECK(count(html, "inf") == 0);
}

}  // namespace
}  // namespace lissome

// Charts are SVG, their scales are text beside them; points that are no numbers are left out.
#include "lissome/report/page.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lissome/report.h"
#include "lissome/report/html_parts.h"

namespace lissome {
namespace {

constexpr size_t kMostRows = 50, kMostPageNotes = 60;
constexpr std::array<const char*, 3> kKinds = {"after", "before", "third"};

struct Extent {
  double low = 0, high = 0;
  bool empty = true;
  void add(double number) {
    low = empty ? number : std::min(low, number);
    high = empty ? number : std::max(high, number);
    empty = false;
  }
};

// Means of groups of neighbours, so that at most kMostPoints are left.
Series thin_out(const Series& series) {
  Series thin{series.name, series.x_unit, series.y_unit, {}, {}};
  const size_t group = std::max<size_t>(1, (series.y.size() + kMostPoints - 1) / kMostPoints);
  for (size_t first = 0; first < series.y.size(); first += group) {
    double sum = 0, count = 0, x = 0;
    for (size_t i = first; i < std::min(first + group, series.y.size()); ++i) {
      if (!std::isfinite(series.y[i])) continue;
      sum += series.y[i], count += 1, x = series.x[i];
    }
    if (count == 0) continue;
    thin.x.push_back(x);
    thin.y.push_back(sum / count);
  }
  return thin;
}

std::string make_path(const Series& series, const char* kind, const Extent& x, const Extent& y) {
  const auto place = [](double number, const Extent& on) {
    return on.high > on.low ? (number - on.low) / (on.high - on.low) : 0.5;
  };
  std::string path;
  for (size_t i = 0; i < series.y.size(); ++i) {
    path += (path.empty() ? "M" : "L") + print_number(1000 * place(series.x[i], x), 1) + "," +
            print_number(236 - 232 * place(series.y[i], y), 1);
  }
  // One point has no line: a stroke of no length with round ends is a dot, whatever the axes' scales.
  const bool is_point = series.y.size() == 1;
  return std::string("<path class=\"") + kind + (is_point ? " point" : "") + "\" d=\"" + path + (is_point ? "h0" : "") +
         "\"/>";
}

std::string make_key(const std::vector<Series>& series) {
  std::string html = "<p class=\"key\">";
  for (size_t i = 0; i < series.size(); ++i)
    html += std::string("<span class=\"swatch ") + kKinds[i] + "\"></span>" + escape_html(series[i].name) + " ";
  return html + "</p>\n";
}

std::string make_chart(const PageChart& chart) {
  std::vector<Series> curves;
  Extent x, y;
  for (const Series& series : chart.series) {
    if (curves.size() == kKinds.size()) break;
    curves.push_back(thin_out(series));
    for (const double number : curves.back().x) x.add(number);
    for (const double number : curves.back().y) y.add(number);
  }
  if (x.empty) return {};
  // From zero where that does not flatten the curve.
  if (y.low > 0 && y.low < 0.6 * y.high) y.low = 0;
  std::string html = "<section><h2>" + escape_html(chart.title) + "</h2>\n<p class=\"hint\">" +
                     escape_html(chart.hint) + "</p>\n" + (curves.size() > 1 ? make_key(curves) : std::string());
  const std::string& unit = curves[0].y_unit;
  html += "<figure><div class=\"scale\"><span>" + format_cell(y.high, unit) + "</span><span>" +
          format_cell(y.low, unit) + "</span></div>" +
          "<svg viewBox=\"0 0 1000 240\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"" +
          escape_html(chart.title) + "\">";
  for (size_t i = curves.size(); i-- > 0;) html += make_path(curves[i], kKinds[i], x, y);  // the first on top
  return html + "</svg><figcaption><span>" + escape_html(curves[0].x_unit) + " " + print_number(x.low, 0) +
         "</span><span>" + print_number(x.high, 0) + "</span></figcaption></figure></section>\n";
}

std::string make_table(const Table& table) {
  std::string html = "<section><h2>" + escape_html(table.title) + "</h2>\n<div class=\"rows\"><table><tr>";
  for (const Column& column : table.columns) html += "<th>" + escape_html(column.name) + "</th>";
  html += "</tr>\n";
  const size_t first = table.rows.size() > kMostRows ? table.rows.size() - kMostRows : 0;
  for (size_t i = first; i < table.rows.size(); ++i) {
    html += "<tr>";
    for (size_t j = 0; j < table.columns.size(); ++j)
      html += "<td>" + escape_html(format_cell(table.rows[i][j], table.columns[j].unit)) + "</td>";
    html += "</tr>\n";
  }
  html += "</table></div>\n";
  if (first > 0) html += "<p class=\"hint\">" + std::to_string(first) + " rows before these, see the JSON</p>\n";
  return html + "</section>\n";
}

std::string make_notes(const std::vector<std::string>& notes) {
  if (notes.empty()) return {};
  std::string html = "<section><h2>Noticed</h2>\n<ul class=\"notes\">";
  for (size_t i = 0; i < notes.size() && i < kMostPageNotes; ++i)
    html += "<li>" + escape_html(notes[i], 600) + "</li>\n";
  if (notes.size() > kMostPageNotes) html += "<li>and " + std::to_string(notes.size() - kMostPageNotes) + " more</li>";
  return html + "</ul></section>\n";
}

std::string make_facts(const ReportPage& page) {
  std::string html = "<section><h2>How it was done</h2>\n<dl>\n";
  for (const auto& [name, text] : page.facts)
    html += "<dt>" + escape_html(name) + "</dt><dd>" + escape_html(text) + "</dd>\n";
  html += "<dt>Run it again</dt><dd><code class=\"command\">" + escape_html(page.command, 4000) + "</code></dd>\n";
  return html + "</dl></section>\n";
}

}  // namespace

std::string render_page(const ReportPage& page) {
  std::string body = "<div class=\"tiles\">\n";
  for (size_t i = 0; i < page.tiles.size(); ++i) {
    const PageTile& tile = page.tiles[i];
    body += make_tile(escape_html(tile.name), escape_html(tile.value), escape_html(tile.detail), i == 0);
  }
  body += "</div>\n" + make_notes(page.notes) + "<div class=\"charts\">\n";
  for (const PageChart& chart : page.charts) body += make_chart(chart);
  body += "</div>\n";
  for (const Table& table : page.tables) body += make_table(table);
  return make_page(page.title, page.answer, body + make_facts(page));
}

}  // namespace lissome

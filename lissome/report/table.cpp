// Tables for the terminal: columns as wide as their content, the widest text columns wrapped where that is too much,
// and columns that still do not fit below the others, behind the first column again. A column without content is left
// out.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "lissome/report.h"
#include "lissome/report/clean_text.h"

namespace lissome {
namespace {

constexpr size_t kLeastWidth = 16;  // of a text column that gives way
constexpr size_t kIndent = 4;       // of text below a row

std::string format_plain(double number) {
  char text[48];
  if (std::isfinite(number) && number == std::floor(number) && std::abs(number) < 1e15) {
    std::snprintf(text, sizeof text, "%.0f", number);
  } else {
    std::snprintf(text, sizeof text, "%.4g", number);
  }
  return text;
}

// Where a text is cut so that the part before takes at most `width` columns, at least one character; never inside of
// one.
size_t find_cut(const std::string& text, size_t width) {
  size_t cut = 0;
  for (size_t next = 1; next <= text.size(); ++next) {
    const bool inside = next < text.size() && (text[next] & 0xc0) == 0x80;
    if (inside) continue;
    if (cut > 0 && count_columns(std::string_view(text).substr(0, next)) > width) break;
    cut = next;
  }
  return cut;
}

// At spaces; a word longer than a line is cut. Text that fits stays as it is, indentation included.
std::vector<std::string> wrap(const std::string& text, size_t width) {
  if (count_columns(text) <= width) return {text};
  std::vector<std::string> lines(1);
  for (std::string word : split(text, ' ')) {
    if (!lines.back().empty() && count_columns(lines.back()) + 1 + count_columns(word) > width) lines.emplace_back();
    while (count_columns(word) > width) {
      const size_t cut = find_cut(word, width);
      lines.back() = word.substr(0, cut);
      lines.emplace_back();
      word.erase(0, cut);
    }
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
  }
  return lines;
}

Json cell_to_json(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  const double number = std::get<double>(cell);
  if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
  return number;  // NaN, which stands for no number, is printed as null
}

bool is_numeric(const Table& table, size_t column) {
  return std::any_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
    return column < row.size() && std::holds_alternative<double>(row[column]);
  });
}

class TableRenderer {
 public:
  TableRenderer(const Table& table, const TerminalOptions& options)
      : table_(table), options_(options), limit_(static_cast<size_t>(std::max(options.width, 40))) {
    for (size_t i = 0; i < table.columns.size(); ++i) {
      if (table.columns[i].below) {
        below_.push_back(i);
      } else if (i == 0 || has_content(i)) {
        beside_.push_back(i);
      }
    }
    for (const size_t i : beside_) {
      size_t width = count_columns(table.columns[i].name);
      for (const auto& row : table.rows) width = std::max(width, count_columns(cell(row, i)));
      widths_.push_back(width);
      numeric_.push_back(is_numeric(table, i));
    }
    // The widest text columns give way, a column at a time, when the table is wider than the terminal.
    size_t total = 2 * (widths_.empty() ? 0 : widths_.size() - 1);
    for (size_t width : widths_) total += width;
    for (; total > limit_; --total) {
      size_t widest = widths_.size();
      for (size_t i = 0; i < widths_.size(); ++i) {
        if (!numeric_[i] && (widest == widths_.size() || widths_[i] > widths_[widest])) widest = i;
      }
      if (widest == widths_.size() || widths_[widest] <= kLeastWidth) break;
      --widths_[widest];
    }
    cut_into_blocks();
  }

  std::string run() {
    if (!table_.title.empty()) text_ += paint("1", table_.title) + "\n";
    for (const Block& block : blocks_) {
      if (&block != &blocks_.front()) text_ += "\n";
      add_block(block, &block == &blocks_.back());
    }
    return std::move(text_);
  }

 private:
  using Block = std::vector<size_t>;  // positions in beside_

  bool has_content(size_t column) const {
    return table_.rows.empty() || std::any_of(table_.rows.begin(), table_.rows.end(), [&](const auto& row) {
             const std::string text = cell(row, column);
             return !text.empty() && text != "-";
           });
  }

  void cut_into_blocks() {
    if (beside_.empty()) return;
    size_t used = 0;
    const auto begin_block = [&] {
      blocks_.push_back({0});
      used = widths_[0];
    };
    begin_block();
    for (size_t i = 1; i < beside_.size(); ++i) {
      if (used + 2 + widths_[i] > limit_ && blocks_.back().size() > 1) begin_block();
      blocks_.back().push_back(i);
      used += 2 + widths_[i];
    }
  }

  void add_block(const Block& block, bool last) {
    std::vector<std::string> names;
    for (const size_t i : block) names.push_back(table_.columns[beside_[i]].name);
    add_line(block, names, "2");
    for (const auto& row : table_.rows) {
      std::vector<std::string> cells;
      for (const size_t i : block) cells.push_back(cell(row, beside_[i]));
      add_line(block, cells, "");
      if (!last) continue;
      for (const size_t i : below_) add_below(table_.columns[i].name, cell(row, i));
    }
  }

  std::string cell(const std::vector<Cell>& row, size_t column) const {
    return column < row.size() ? clean_text(format_cell(row[column], table_.columns[column].unit)) : std::string();
  }

  std::string paint(const char* code, const std::string& text) const {
    return options_.color && *code != '\0' ? "\033[" + std::string(code) + "m" + text + "\033[0m" : text;
  }

  void add_line(const Block& block, const std::vector<std::string>& cells, const char* code) {
    std::vector<std::vector<std::string>> wrapped;
    size_t height = 1;
    for (size_t i = 0; i < cells.size(); ++i) {
      wrapped.push_back(wrap(cells[i], widths_[block[i]]));
      height = std::max(height, wrapped.back().size());
    }
    for (size_t line = 0; line < height; ++line) {
      std::string out;
      for (size_t i = 0; i < cells.size(); ++i) {
        const std::string part = line < wrapped[i].size() ? wrapped[i][line] : std::string();
        const size_t used = count_columns(part);
        const size_t width = widths_[block[i]];
        const std::string padding(width > used ? width - used : 0, ' ');
        out += (i == 0 ? "" : "  ") + (numeric_[block[i]] ? padding + part : part + padding);
      }
      out.erase(out.find_last_not_of(' ') + 1);
      text_ += paint(code, out) + "\n";
    }
  }

  void add_below(const std::string& name, const std::string& text) {
    if (text.empty()) return;
    const std::string indent(kIndent, ' ');
    for (const std::string& line : wrap(name + ": " + text, limit_ - kIndent))
      text_ += indent + paint("2", line) + "\n";
  }

  const Table& table_;
  const TerminalOptions& options_;
  const size_t limit_;
  std::vector<size_t> beside_, below_;  // columns
  std::vector<size_t> widths_;          // of those beside each other
  std::vector<bool> numeric_;
  std::vector<Block> blocks_;
  std::string text_;
};

}  // namespace

std::string format_cell(const Cell& cell, const std::string& unit) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  const double number = std::get<double>(cell);
  if (std::isnan(number)) return "-";
  if (unit == "s") return format_duration(number);
  if (unit == "B") return format_bytes(static_cast<int64_t>(number));
  if (unit == "%") return format_percent(number);
  char text[48];
  if (unit == "x") {
    std::snprintf(text, sizeof text, "%.2fx", number);
    return text;
  }
  return format_plain(number) + (unit.empty() ? "" : " " + unit);
}

std::string render_table(const Table& table, const TerminalOptions& options) {
  return TableRenderer(table, options).run();
}

Json to_json(const Table& table) {
  Json json = {{"title", table.title}, {"columns", Json::array()}, {"rows", Json::array()}};
  std::vector<size_t> repeated;  // columns that have an old name
  for (const Column& column : table.columns) json["columns"].push_back({{"name", column.name}, {"unit", column.unit}});
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    if (column.old_name.empty()) continue;
    json["columns"].push_back({{"name", column.old_name}, {"unit", column.unit}, {"old_name_of", column.name}});
    repeated.push_back(i);
  }
  for (const auto& row : table.rows) {
    Json cells = Json::array();
    for (const Cell& cell : row) cells.push_back(cell_to_json(cell));
    while (!repeated.empty() && cells.size() < table.columns.size()) cells.push_back(nullptr);
    for (const size_t i : repeated) cells.push_back(Json(cells[i]));
    json["rows"].push_back(std::move(cells));
  }
  return json;
}

}  // namespace lissome

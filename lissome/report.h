// Face of report: shows measurements as terminal tables, JSON, offline HTML pages without scripts, and event files for
// TensorBoard.
#pragma once

#include <string>
#include <vector>

#include "lissome/base.h"
#include "lissome/measure.h"
#include "lissome/report/clean_text.h"
#include "lissome/report/event_file.h"
#include "lissome/report/page.h"

namespace lissome {

struct TerminalOptions {
  int width = 100;     // columns; longer text cells are wrapped
  bool color = false;  // ANSI colours; the caller checks NO_COLOR and for a terminal
};

// Formats numbers in the unit of their column: "s" as a duration, "B" as bytes, "%" of a fraction, "x" as a factor.
std::string format_cell(const Cell& cell, const std::string& unit);
std::string render_table(const Table& table, const TerminalOptions& options = {});
// {"title", "columns": [{"name", "unit"}], "rows"}: raw numbers, null for no number, "Infinity" and "-Infinity". A
// column with an old name is repeated behind all columns as {"name": old name, "unit", "old_name_of": name}.
Json to_json(const Table& table);

// The tables of an optimization: goals, steps, layers (slowest first, at most `layers`).
Table make_goal_table(const OptimizationRecord& record);
// "first answer after 2.10 s, 90 % of the gain after 14.2 s, 45.0 s in all"
std::string describe_search_times(const OptimizationRecord& record);
// The versions that no other one beats, the fastest first.
Table make_front_table(const OptimizationRecord& record);
Table make_step_table(const OptimizationRecord& record);
Table make_layer_table(const OptimizationRecord& record, int layers = 20);

// Shows the record on a terminal: the answer in the first line, goals, steps, layers and the command that repeats it.
std::string render_terminal(const OptimizationRecord& record, const TerminalOptions& options = {});
// Renders one page under 300 kB, light and dark, for widths from 400 px. It fetches and runs nothing.
std::string render_html(const OptimizationRecord& record);

}  // namespace lissome

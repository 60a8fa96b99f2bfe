// Face of report: measurements as people read them. A terminal table, JSON, offline HTML pages without scripts, event
// files for TensorBoard.
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
  bool color = false;  // ANSI colours; the caller honours NO_COLOR and whether a terminal is there
};

// Numbers in the unit of their column: "s" as a duration, "B" as bytes, "%" of a fraction, "x" as a factor.
std::string format_cell(const Cell& cell, const std::string& unit);
std::string render_table(const Table& table, const TerminalOptions& options = {});
// {"title", "columns": [{"name", "unit"}], "rows"}: raw numbers, null where there is none, "Infinity" and "-Infinity".
Json to_json(const Table& table);

// The tables of an optimization: goals, steps, layers (slowest first, at most `layers`).
Table make_goal_table(const OptimizationRecord& record);
Table make_step_table(const OptimizationRecord& record);
Table make_layer_table(const OptimizationRecord& record, int layers = 20);

// All of it for a terminal: the answer in the first line, goals, steps, layers, how to run it again.
std::string render_terminal(const OptimizationRecord& record, const TerminalOptions& options = {});
// One page, under 300 kB, light and dark, from 400 px up; nothing is fetched, nothing runs.
std::string render_html(const OptimizationRecord& record);

}  // namespace lissome

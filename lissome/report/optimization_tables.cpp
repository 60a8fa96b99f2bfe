// An optimization as tables, and as text for a terminal.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lissome/report.h"
#include "lissome/report/clean_text.h"

namespace lissome {
namespace {

std::string format_amount(double amount, const std::string& unit) {
  if (unit == "s" || unit == "B") return format_cell(amount, unit);
  char text[48];
  if (unit == "/s") {
    std::snprintf(text, sizeof text, "%.4g a second", amount);
    return text;
  }
  std::snprintf(text, sizeof text, "%.4f", amount);
  return text;
}

double or_nan(const std::optional<double>& number) { return number.value_or(std::nan("")); }

}  // namespace

Table make_goal_table(const OptimizationRecord& record) {
  Table table{"Goals", {{"goal", ""}, {"target", ""}, {"measured", ""}, {"met", ""}}, {}};
  for (const GoalRecord& goal : record.goals) {
    table.rows.push_back({goal.name, (goal.at_least ? "at least " : "at most ") + format_amount(goal.target, goal.unit),
                          format_amount(goal.measured, goal.unit), goal.met ? "yes" : "no"});
  }
  return table;
}

Table make_step_table(const OptimizationRecord& record) {
  Table table{"Steps",
              {{"stage", ""},
               {"step", ""},
               {"outcome", ""},
               {"before", "s"},
               {"after", "s"},
               {"memory", "B"},
               {record.metric.empty() ? "quality" : record.metric, ""},
               {"why", ""}},
              {}};
  for (const StepRecord& step : record.steps) {
    const bool measured = step.seconds_after > 0;
    const double none = std::nan("");
    table.rows.push_back({step.stage, step.name,
                          step.accepted ? "kept"
                          : measured    ? "undone"
                                        : "left out",
                          measured ? step.seconds_before : none, measured ? step.seconds_after : none,
                          measured ? static_cast<double>(step.memory_after) : none, or_nan(step.quality_after),
                          step.reason});
  }
  return table;
}

Table make_front_table(const OptimizationRecord& record) {
  Table table{"Front",
              {{"version", ""},
               {"call", "s"},
               {"of original", "x"},
               {"memory", "B"},
               {"file", "B"},
               {record.metric.empty() ? "quality" : record.metric, ""},
               {"state", ""}},
              {}};
  for (const PointRecord& point : record.front) {
    table.rows.push_back({point.name, point.seconds, point.ratio.median, static_cast<double>(point.memory),
                          static_cast<double>(point.size), or_nan(point.quality),
                          point.chosen     ? "the result"
                          : !point.allowed ? "loses more than allowed"
                                           : ""});
  }
  return table;
}

Table make_layer_table(const OptimizationRecord& record, int layers) {
  Table table{"Time by layer",
              {{"module", ""}, {"source", ""}, {"op", ""}, {"before", "s"}, {"after", "s"}, {"kernel", ""}},
              {}};
  std::vector<LayerRecord> sorted = record.layers;
  std::stable_sort(sorted.begin(), sorted.end(), [](const LayerRecord& a, const LayerRecord& b) {
    return std::max(a.seconds_before, a.seconds_after) > std::max(b.seconds_before, b.seconds_after);
  });
  for (size_t i = 0; i < sorted.size() && i < static_cast<size_t>(layers); ++i) {
    const LayerRecord& layer = sorted[i];
    table.rows.push_back(
        {layer.module, layer.source, layer.op, layer.seconds_before, layer.seconds_after, layer.kernel});
  }
  return table;
}

std::string describe_search_times(const OptimizationRecord& record) {
  std::string text;
  if (record.first_answer_seconds) text += "first answer after " + format_duration(*record.first_answer_seconds) + ", ";
  if (record.most_gain_seconds) text += "90 % of the gain after " + format_duration(*record.most_gain_seconds) + ", ";
  return text + format_duration(record.spent_seconds) + " in all";
}

std::string render_terminal(const OptimizationRecord& record, const TerminalOptions& options) {
  std::string text = clean_text(record.answer) + "\n\n";
  if (!record.goals.empty()) text += render_table(make_goal_table(record), options) + "\n";
  for (const GoalRecord& goal : record.goals) {
    for (const std::string& advice : goal.advice) text += "  " + goal.name + ": " + clean_text(advice) + "\n";
  }
  if (!record.blocker.empty()) text += "  blocker: " + clean_text(record.blocker) + "\n\n";
  text += render_table(make_step_table(record), options) + "\n";
  if (record.front.size() > 1) text += render_table(make_front_table(record), options) + "\n";
  if (!record.layers.empty()) text += render_table(make_layer_table(record), options) + "\n";
  text += "search   " + describe_search_times(record) + "\ndata     " + clean_text(record.data_note) + "\nmachine  " +
          clean_text(record.machine) + "\ncommand  " + clean_text(record.command) + "\n";
  return text;
}

}  // namespace lissome

// One page without scripts: bars are boxes with a share of the width, curves are SVG, everything else is text, so that
// it reads at 400 px as well as at 1600 px and prints. Colours follow the reader's light or dark setting.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lissome/report.h"
#include "lissome/report/html_parts.h"

namespace lissome {
namespace {

constexpr size_t kMostLayers = 40;
constexpr size_t kMostSteps = 60;
constexpr size_t kMostStepNotes = 30;  // of a step
constexpr size_t kMostNotesInAll = 240;

// ---- sections ----

std::string make_tiles(const OptimizationRecord& record) {
  std::string html = "<div class=\"tiles\">\n";
  html += make_tile("One call", format_duration(record.seconds_final),
                    "was " + format_duration(record.seconds_original), false);
  html +=
      make_tile("Speed", print_number(record.speedup.median, 2) + "&times;",
                print_number(record.speedup.interval.low, 2) + " to " + print_number(record.speedup.interval.high, 2) +
                    ", " + print_number(100 * record.speedup.confidence, 0) + " % interval",
                true);
  html += make_tile("Memory", format_bytes(record.memory_final), "was " + format_bytes(record.memory_original), false);
  html += make_tile("Weights", format_bytes(record.size_final), "was " + format_bytes(record.size_original), false);
  if (record.quality_final) {
    html += make_tile(escape_html(record.metric), print_number(*record.quality_final, 4),
                      "was " + print_number(*record.quality_original, 4), false);
  }
  return html + "</div>\n";
}

std::string make_goals(const OptimizationRecord& record) {
  if (record.goals.empty()) return {};
  std::string html = "<section><h2>Goals</h2>\n<ul class=\"goals\">\n";
  const Table table = make_goal_table(record);
  for (size_t i = 0; i < record.goals.size(); ++i) {
    const GoalRecord& goal = record.goals[i];
    const auto text = [&](size_t column) { return escape_html(std::get<std::string>(table.rows[i][column])); };
    html += std::string("<li class=\"") + (goal.met ? "met" : "missed") + "\"><b>" + (goal.met ? "Met" : "Not met") +
            "</b> " + text(0) + ": " + text(2) + ", asked " + text(1);
    if (!goal.advice.empty()) {
      html += "<ul>";
      for (const std::string& advice : goal.advice) html += "<li>" + escape_html(advice) + "</li>";
      html += "</ul>";
    }
    html += "</li>\n";
  }
  html += "</ul>\n";
  if (!record.blocker.empty()) html += "<p>What blocks it: " + escape_html(record.blocker) + ".</p>\n";
  return html + "</section>\n";
}

// Notes of a step, folded away; `left` is how many more the page takes.
std::string make_step_notes(const StepRecord& step, size_t& left) {
  if (step.notes.empty()) return {};
  const size_t shown = std::min({step.notes.size(), kMostStepNotes, left});
  left -= shown;
  std::string html = "<details><summary>" + std::to_string(step.notes.size()) +
                     (step.notes.size() == 1 ? " note" : " notes") + "</summary><ul>";
  for (size_t i = 0; i < shown; ++i) html += "<li>" + escape_html(step.notes[i]) + "</li>";
  if (step.notes.size() > shown)
    html += "<li>and " + std::to_string(step.notes.size() - shown) + " more, see the JSON</li>";
  return html + "</ul></details>\n";
}

std::string make_step(const StepRecord& step, double largest, size_t& notes_left) {
  const bool measured = step.seconds_after > 0;
  const char* state = step.accepted ? "kept" : measured ? "undone" : "left";
  const char* word = step.accepted ? "kept" : measured ? "undone" : "left out";
  std::string html = std::string("<article class=\"step ") + state + "\"><div><h3><i>" + word + "</i> " +
                     escape_html(step.name) + " <small>" + escape_html(step.stage) + "</small></h3>\n<p>" +
                     escape_html(step.reason) + ".</p>\n" + make_step_notes(step, notes_left) + "</div>";
  if (measured) {
    html += "<div>" + make_bar("before", step.seconds_before, largest, format_duration(step.seconds_before)) +
            make_bar("after", step.seconds_after, largest, format_duration(step.seconds_after)) +
            "<p class=\"hint\">memory " + format_bytes(step.memory_before) + " &rarr; " +
            format_bytes(step.memory_after);
    if (step.quality_after) {
      html += ", quality " +
              (step.quality_before ? print_number(*step.quality_before, 4) + " &rarr; " : std::string()) +
              print_number(*step.quality_after, 4);
    }
    html += "</p></div>";
  }
  return html + "</article>\n";
}

constexpr const char* kKey =
    "<p class=\"key\"><span class=\"swatch before\"></span>before "
    "<span class=\"swatch after\"></span>after</p>\n";

std::string make_steps(const OptimizationRecord& record) {
  if (record.steps.empty()) return {};
  double largest = 0;
  size_t accepted = 0;
  for (const StepRecord& step : record.steps) {
    largest = std::max({largest, step.seconds_before, step.seconds_after});
    accepted += step.accepted;
  }
  std::string html =
      "<section><h2>Steps</h2>\n<p class=\"hint\">" + std::to_string(accepted) + " of " +
      std::to_string(record.steps.size()) +
      " steps were kept. Each was timed against the best version before it, in turns. A step is undone if it "
      "does not pay beyond noise or loses too much quality.</p>\n" +
      kKey;
  size_t notes_left = kMostNotesInAll;
  for (size_t i = 0; i < record.steps.size() && i < kMostSteps; ++i)
    html += make_step(record.steps[i], largest, notes_left);
  if (record.steps.size() > kMostSteps) {
    html += "<p class=\"hint\">and " + std::to_string(record.steps.size() - kMostSteps) + " more, see the JSON</p>\n";
  }
  return html + "</section>\n";
}

const char* choose_point_kind(const PointRecord& point) {
  return point.chosen ? "after" : point.allowed ? "before" : "third";
}

std::string make_version(const PointRecord& point, const std::string& metric) {
  std::string html = std::string("<li><span class=\"swatch ") + choose_point_kind(point) + "\"></span> <b>" +
                     escape_html(point.name) + "</b> " + format_duration(point.seconds) + " a call, " +
                     format_bytes(point.memory) + " of memory, a file of " + format_bytes(point.size);
  if (point.quality) html += ", " + escape_html(metric) + " " + print_number(*point.quality, 4);
  if (point.chosen) html += ": the result";
  if (!point.allowed) html += ": loses more than allowed";
  return html + "</li>\n";
}

// Time over the size of the file, both from zero: what is near the lower left corner is fast and small.
std::string make_front(const OptimizationRecord& record) {
  double most_seconds = 0, most_bytes = 0;
  for (const PointRecord& point : record.front) {
    most_seconds = std::max(most_seconds, point.seconds);
    most_bytes = std::max(most_bytes, static_cast<double>(point.size));
  }
  if (record.front.size() < 2 || most_seconds <= 0 || most_bytes <= 0) return {};
  std::string html =
      "<section><h2>Versions to choose from</h2>\n<p class=\"hint\">No other version that was tried beats one of these "
      "in time, memory, size and quality at once.</p>\n<figure><div class=\"scale\"><span>" +
      format_duration(most_seconds) +
      "</span><span>0</span></div><svg viewBox=\"0 0 1000 240\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"time of a call over the size of the file\">";
  for (const PointRecord& point : record.front) {
    const std::string x = print_number(980 * static_cast<double>(point.size) / most_bytes, 1);
    const std::string y = print_number(240 - 225 * point.seconds / most_seconds, 1);
    html += std::string("<path class=\"point ") + choose_point_kind(point) + "\" d=\"M" + x + "," + y + "h0\"><title>" +
            escape_html(point.name) + "</title></path>";
  }
  html += "</svg><figcaption>a file of 0 to " + format_bytes(static_cast<int64_t>(most_bytes)) +
          "</figcaption></figure>\n<ul class=\"goals\">\n";
  for (const PointRecord& point : record.front) html += make_version(point, record.metric);
  return html + "</ul></section>\n";
}

std::string make_layer(const LayerRecord& layer, double largest) {
  const std::string name = layer.module.empty() ? layer.op : layer.module;
  std::string html = "<article class=\"layer\"><div><h3>" + escape_html(name) + "</h3>";
  if (!layer.source.empty()) html += "<code class=\"where\">" + escape_html(layer.source) + "</code> ";
  if (!layer.code.empty()) html += "<code class=\"line\">" + escape_html(layer.code) + "</code>";
  html += "<p class=\"hint\">" + escape_html(layer.op) +
          (layer.kernel.empty() ? "" : " &rarr; " + escape_html(layer.kernel)) + "</p></div><div>";
  html += make_bar("before", layer.seconds_before, largest, format_duration(layer.seconds_before));
  html += make_bar("after", layer.seconds_after, largest, format_duration(layer.seconds_after));
  return html + "</div></article>\n";
}

std::string make_layers(const OptimizationRecord& record) {
  if (record.layers.empty()) return {};
  std::vector<LayerRecord> layers = record.layers;
  std::stable_sort(layers.begin(), layers.end(), [](const LayerRecord& a, const LayerRecord& b) {
    return std::max(a.seconds_before, a.seconds_after) > std::max(b.seconds_before, b.seconds_after);
  });
  LayerRecord rest;
  rest.module =
      std::to_string(layers.size() > kMostLayers ? layers.size() - kMostLayers : 0) + " smaller layers together";
  rest.op = rest.kernel = "various";
  for (size_t i = kMostLayers; i < layers.size(); ++i) {
    rest.seconds_before += layers[i].seconds_before;
    rest.seconds_after += layers[i].seconds_after;
  }
  if (layers.size() > kMostLayers) {
    layers.resize(kMostLayers);
    layers.push_back(rest);
  }
  double largest = 0;
  for (const LayerRecord& layer : layers) largest = std::max({largest, layer.seconds_before, layer.seconds_after});
  std::string html =
      "<section><h2>Time by layer</h2>\n<p class=\"hint\">Time of one call by module and source line, the slowest "
      "first.</p>\n" +
      std::string(kKey);
  for (const LayerRecord& layer : layers) html += make_layer(layer, largest);
  return html + "</section>\n";
}

// A step curve in a 1000 x 240 box; at most kMostPoints, the largest of each group kept so that peaks stay.
std::string make_curve(const Series& series, const char* kind, double most_x, double most_y) {
  const size_t group = std::max<size_t>(1, (series.y.size() + kMostPoints - 1) / kMostPoints);
  std::string path;
  for (size_t i = 0; i < series.y.size(); i += group) {
    const double y =
        *std::max_element(series.y.begin() + static_cast<std::ptrdiff_t>(i),
                          series.y.begin() + static_cast<std::ptrdiff_t>(std::min(i + group, series.y.size())));
    const std::string height = print_number(240 - 232 * y / most_y, 1);
    const double left = 1000 * static_cast<double>(i) / most_x;
    const double right = 1000 * static_cast<double>(std::min(i + group, series.y.size())) / most_x;
    path +=
        (path.empty() ? "M" : "L") + print_number(left, 1) + "," + height + "L" + print_number(right, 1) + "," + height;
  }
  return std::string("<path class=\"") + kind + "\" d=\"" + path + "\"/>";
}

std::string make_memory(const OptimizationRecord& record) {
  double most_x = 0, most_y = 0;
  for (const Series& series : record.memory_over_time) {
    most_x = std::max(most_x, static_cast<double>(series.y.size()));
    for (double y : series.y) most_y = std::max(most_y, y);
  }
  if (most_x == 0 || most_y == 0) return {};
  std::string html =
      "<section><h2>Memory over time</h2>\n<p class=\"hint\">Bytes of intermediate values that are alive after "
      "each node, without weights.</p>\n" +
      std::string(kKey);
  html += "<figure><div class=\"scale\"><span>" + format_bytes(static_cast<int64_t>(most_y)) +
          "</span><span>0</span></div>"
          "<svg viewBox=\"0 0 1000 240\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"live bytes by node\">";
  const char* kinds[] = {"before", "after"};
  for (size_t i = 0; i < record.memory_over_time.size() && i < 2; ++i) {
    html += make_curve(record.memory_over_time[i], kinds[i], most_x, most_y);
  }
  html += "</svg><figcaption>first node to last node (" + print_number(most_x, 0) + ")</figcaption></figure>\n";
  return html + "</section>\n";
}

std::string make_record_facts(const OptimizationRecord& record) {
  std::string html = "<section><h2>How this was measured</h2>\n<dl>\n";
  const auto fact = [&](const char* name, const std::string& text) {
    if (!text.empty()) html += std::string("<dt>") + name + "</dt><dd>" + escape_html(text) + "</dd>\n";
  };
  fact("Model", record.model);
  fact("Data", record.data_note);
  fact("Machine", record.machine);
  fact("Threads, batch, seed",
       std::to_string(record.threads) + ", " + std::to_string(record.batch) + ", " + std::to_string(record.seed));
  fact("Search", describe_search_times(record));
  html += "<dt>Run it again</dt><dd><code class=\"command\">" + escape_html(record.command, 4000) + "</code></dd>\n";
  return html + "</dl></section>\n";
}

}  // namespace

std::string render_html(const OptimizationRecord& record) {
  return make_page(record.model, record.answer,
                   make_tiles(record) + make_goals(record) + make_steps(record) + make_front(record) +
                       make_layers(record) + make_memory(record) + make_record_facts(record));
}

}  // namespace lissome

// lissome peaks: what this machine can do at most.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "lissome/cli/command.h"
#include "lissome/cli/flags.h"
#include "lissome/runtime.h"

namespace lissome {
namespace {

std::string format_rate(double per_second, const char* unit) {
  if (per_second == 0) return "-";
  char text[48];
  std::snprintf(text, sizeof text, "%.1f %s", per_second / 1e9, unit);
  return text;
}

Table make_table(const std::vector<MachinePeaks>& columns) {
  Table table{"", {{"limit", ""}}, {}};
  for (const MachinePeaks& peaks : columns) {
    table.columns.push_back({std::to_string(peaks.threads) + (peaks.threads == 1 ? " thread" : " threads"), ""});
  }
  const auto add = [&](const char* name, const auto& show) {
    std::vector<Cell> row = {name};
    for (const MachinePeaks& peaks : columns) row.emplace_back(show(peaks));
    table.rows.push_back(std::move(row));
  };
  const auto add_rate = [&](const char* name, double MachinePeaks::* field, const char* unit) {
    add(name, [&](const MachinePeaks& peaks) { return format_rate(peaks.*field, unit); });
  };
  const auto add_time = [&](const char* name, double MachinePeaks::* field) {
    add(name, [&](const MachinePeaks& peaks) { return peaks.*field == 0 ? "-" : format_duration(peaks.*field); });
  };
  add_rate("f32 products", &MachinePeaks::multiply_f32, "GMAC/s");
  add_rate("bf16 products", &MachinePeaks::multiply_bf16, "GMAC/s");
  add_rate("int8 products (u8 with s8)", &MachinePeaks::multiply_u8s8, "GMAC/s");
  add_rate("first-level cache", &MachinePeaks::read_l1, "GB/s");
  add_rate("second-level cache", &MachinePeaks::read_l2, "GB/s");
  add_rate("third-level cache", &MachinePeaks::read_l3, "GB/s");
  add_rate("memory", &MachinePeaks::read_memory, "GB/s");
  add_time("barrier", &MachinePeaks::barrier);
  add_time("handing out work", &MachinePeaks::region);
  add_time("first touch of a page", &MachinePeaks::page_fault);
  return table;
}

}  // namespace

int run_peaks(const std::vector<std::string>& arguments, Console& console) {
  Flags flags("peaks", "What this machine can do at most, with one thread and with all. Measured once, then kept.");
  int threads = 0;
  bool again = false, json = false;
  flags.add("--threads", threads, "0: one, one for each core, and all that this process may use", 0, kMostThreads);
  flags.add("--again", again, "measure anew");
  flags.add("--json", json, "print the result as JSON");
  if (!flags.parse(arguments)) return 0;

  std::vector<int> counts = {threads};
  if (threads == 0) counts = {1, usable_cores(), usable_threads()};
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  std::vector<MachinePeaks> columns;
  for (int count : counts) columns.push_back(again ? measure_peaks(count) : find_peaks(count));
  if (json) {
    Json list = Json::array();
    for (const MachinePeaks& peaks : columns) list.push_back(to_json(peaks));
    console.print(print_json(Json{{"machine", processor_name()}, {"features", describe_features()}, {"peaks", list}}) +
                  "\n");
  } else {
    console.print(render_table(make_table(columns), console.terminal()));
    console.say(processor_name() + ", " + describe_features());
  }
  return 0;
}

}  // namespace lissome

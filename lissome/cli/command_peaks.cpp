// lissome peaks: shows the peak performance of this machine.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lissome/cli/command.h"
#include "lissome/cli/flag_help.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/json_answer.h"
#include "lissome/runtime.h"

namespace lissome {
namespace {

struct Limit {
  const char* name;  // in the table
  const char* key;   // in --json, in the base unit: multiply-adds or bytes per second, or seconds
  double MachinePeaks::* field;
  const char* unit;  // of the table: `scale` of the base unit
  double scale;
};

constexpr Limit kLimits[] = {
    {"f32 products", "f32_products", &MachinePeaks::multiply_f32, "GMAC/s", 1e9},
    {"bf16 products", "bf16_products", &MachinePeaks::multiply_bf16, "GMAC/s", 1e9},
    {"int8 products (u8 with s8)", "int8_products", &MachinePeaks::multiply_u8s8, "GMAC/s", 1e9},
    {"first-level cache", "first_level_cache", &MachinePeaks::read_l1, "GB/s", 1e9},
    {"second-level cache", "second_level_cache", &MachinePeaks::read_l2, "GB/s", 1e9},
    {"third-level cache", "third_level_cache", &MachinePeaks::read_l3, "GB/s", 1e9},
    {"memory", "memory", &MachinePeaks::read_memory, "GB/s", 1e9},
    {"barrier", "barrier", &MachinePeaks::barrier, "us", 1e-6},
    {"handing out work", "handing_out_work", &MachinePeaks::region, "us", 1e-6},
    {"first touch of a page", "first_touch_of_a_page", &MachinePeaks::page_fault, "us", 1e-6},
};

// NaN if the machine does not have this unit.
Table make_peaks_table(const std::vector<MachinePeaks>& columns) {
  Table table{"Peaks", {{"limit", ""}, {"unit", ""}}, {}};
  for (const MachinePeaks& peaks : columns) {
    table.columns.push_back({std::to_string(peaks.threads) + (peaks.threads == 1 ? " thread" : " threads"), ""});
  }
  for (const Limit& limit : kLimits) {
    std::vector<Cell> row = {limit.name, limit.unit};
    for (const MachinePeaks& peaks : columns) {
      const double figure = peaks.*limit.field / limit.scale;
      row.emplace_back(figure == 0 ? std::nan("") : figure);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Json list_peaks(const std::vector<MachinePeaks>& columns) {
  Json list = Json::array();
  for (const MachinePeaks& peaks : columns) {
    Json entry{{"threads", peaks.threads}};
    for (const Limit& limit : kLimits) {
      const double figure = peaks.*limit.field;
      entry[limit.key] = figure == 0 ? Json() : Json(figure);
    }
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace

int run_peaks(const std::vector<std::string>& arguments, Console& console) {
  Flags flags(
      "peaks",
      "Shows the peak performance of this machine, with one thread and with all. It is measured once and cached.");
  int threads = 0;
  bool again = false, json = false;
  flags.add("--threads", threads, "Threads; 0: one, one for each core, and all that this process may use.", 0,
            kMostThreads);
  flags.add("--again", again, "Measure anew instead of reading the cache.");
  flags.add_json(json);
  flags.parse(arguments);

  std::vector<int> counts = {threads};
  if (threads == 0) counts = {1, usable_cores(), usable_threads()};
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  std::vector<MachinePeaks> columns;
  for (int count : counts) columns.push_back(again ? measure_peaks(count) : find_peaks(count));
  const Table table = make_peaks_table(columns);
  if (json) {
    const Json result{{"machine", processor_name()}, {"features", describe_features()}, {"peaks", list_peaks(columns)}};
    console.print(print_answer("peaks", result, {&table, 1}));
  } else {
    console.print(render_table(table, console.terminal()));
    console.say(processor_name() + ", " + describe_features());
  }
  return 0;
}

}  // namespace lissome

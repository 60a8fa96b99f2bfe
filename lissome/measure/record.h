// What was measured, as plain data: what `report` draws and `--json` prints. No behaviour, no torch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lissome/measure/statistics.h"

namespace lissome {

// A cell is text or a number; numbers are formatted by the column's unit ("s", "B", "%", "x", "" plain).
using Cell = std::variant<std::string, double>;
struct Column {
  std::string name;
  std::string unit;
  bool below = false;         // long text, which the terminal shows under the row, across all columns
  std::string old_name = {};  // name in an earlier version, under which JSON repeats the column for one version
};
struct Table {
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};

struct Series {
  std::string name, x_unit, y_unit;
  std::vector<double> x, y;
};

struct GoalRecord {
  std::string name;  // "latency", "memory", "size", "throughput", "first answer", "loss"
  std::string unit;  // "s", "B", "/s", "fraction"
  double target = 0, measured = 0;
  bool met = false;
  std::vector<std::string> advice;  // when missed: what it would take
  bool at_least = false;            // the target is the least that meets it; else the most
};

// One thing tried: accepted, or undone with the reason.
struct StepRecord {
  std::string stage;  // basic, memory, computation, compilation, deployment, validation
  std::string name;   // "int8 activations and weights"
  bool accepted = false;
  std::string reason;                                   // why accepted or undone, one sentence
  double seconds_before = 0, seconds_after = 0;         // median latency
  Ratio ratio;                                          // after / before, interleaved
  int64_t memory_before = 0, memory_after = 0;          // allocator bytes, peak
  int64_t size_before = 0, size_after = 0;              // weights, bytes
  std::optional<double> quality_before, quality_after;  // in the metric's unit
  double spent_seconds = 0;                             // wall time of the step, trying included
  double finished_seconds = 0;                          // when it was judged, since the search began
  std::vector<std::string> notes;                       // layers kept in float, predicted against measured, ...
};

// A version of the model that was tried and measured.
struct PointRecord {
  std::string name;  // of the step that made it; "original"
  std::string file;  // in the folder of the front; empty where there is none
  Ratio ratio;       // its time / the original's
  double seconds = 0;
  int64_t memory = 0, size = 0;   // allocator bytes at the peak; bytes of its file
  std::optional<double> quality;  // in the metric's unit
  bool allowed = false;           // loses no more than the goal allows
  bool chosen = false;            // is the result
};

// A node's or module's time before and after.
struct LayerRecord {
  std::string module;  // "encoder.layer.0.attention"
  std::string source;  // "bert.py:88"
  std::string code;    // the user's line
  std::string op;      // "aten::linear"
  std::string kernel;  // what ran it
  std::string dtype;
  double seconds_before = 0, seconds_after = 0;
  int64_t bytes = 0;
};

struct OptimizationRecord {
  std::string model, metric, machine, command;  // command: how to re-run
  std::string answer;                           // the first line of every report
  std::string data_note;                        // "256 samples calibrate, 512 validate" or "no data: exact steps only"
  uint64_t seed = 0;
  int threads = 0;
  int64_t batch = 0;
  double seconds_original = 0, seconds_final = 0;
  Ratio speedup;  // original / final
  int64_t memory_original = 0, memory_final = 0, size_original = 0, size_final = 0;
  std::optional<double> quality_original, quality_final;
  int64_t file_bytes = 0;  // of the finished file with this record
  // Where a goal asks for them.
  std::optional<double> samples_per_second, first_answer;
  int64_t throughput_batch = 0;  // samples of the calls that give most samples a second
  std::string blocker;           // what stands in the way of a missed goal; empty when all are met
  bool interrupted = false;
  std::vector<GoalRecord> goals;
  // Of all versions that were tried, those that no other one beats in time, memory, size and quality at once, the
  // fastest first.
  std::vector<PointRecord> front;
  std::vector<StepRecord> steps;
  std::vector<LayerRecord> layers;
  std::vector<Series> memory_over_time;  // "before", "after": bytes live by node
  // Since the search began: when the first step was kept, and when the kept ones had nine tenths of the final gain in
  // speed. Empty where there is none.
  std::optional<double> first_answer_seconds, most_gain_seconds;
  double spent_seconds = 0;
};

}  // namespace lissome

// Made-up records for the tests of this module.
#pragma once

#include <string>

#include "lissome/report.h"

namespace lissome {

// Characters that mean something to HTML, to a terminal, or to nobody.
inline const std::string kOdd =
    "<img src=x onerror=\"alert(1)\"> a & b Ünïcødé 模型 'quoted' \x1b[31mred\x1b[0m \xff\xfe "
    "a_very_long_name_without_any_"
    "place_to_break_it_that_would_push_the_page_wide_if_nothing_wrapped_it_at_all_0123456789";

inline LayerRecord make_layer_record(int number) {
  const std::string text = std::to_string(number);
  return {"encoder.layer." + text + ".attention.output.dense",
          "modeling_bert.py:" + std::to_string(100 + number),
          "hidden = self.dense(" + kOdd + ")",
          "aten::linear",
          "linear_f32",
          "f32",
          1e-3 / (1 + number),
          4e-4 / (1 + number),
          1 << 20};
}

inline StepRecord make_step_record(bool accepted, bool measured) {
  StepRecord step;
  step.stage = "computation";
  step.name = "int8 " + kOdd;
  step.accepted = accepted;
  step.reason = accepted ? "2.43 times as fast (2.36 to 2.49)" : "loses 0.12, 0.005 is allowed";
  if (measured) {
    step.seconds_before = 4.2e-3;
    step.seconds_after = accepted ? 1.7e-3 : 4.4e-3;
    step.ratio = {0.412, {0.401, 0.423}, 0.999, 1e-4};
    step.memory_before = 40 << 20;
    step.memory_after = 12 << 20;
    step.quality_before = 0.9312;
    step.quality_after = 0.9301;
  }
  for (int i = 0; i < 80; ++i) step.notes.push_back("layer " + std::to_string(i) + " stays in float: " + kOdd);
  return step;
}

// As large as a large model's: 400 layers, 20,000 nodes, 30 steps.
inline OptimizationRecord make_odd_record() {
  OptimizationRecord record;
  record.model = kOdd;
  record.metric = "top1";
  record.machine = "Some Processor 9000 @ 3.00GHz, 64 threads, avx2 avx512 vnni " + kOdd;
  record.command = "lissome optimize '" + kOdd + "' -o out.lissome";
  record.answer = "2.47 times faster: 1.70 ms instead of 4.20 ms " + kOdd;
  record.data_note = "accuracy on 2,000 labelled samples; 512 other samples are used for calibration";
  record.blocker = "the slowest layer alone, '" + kOdd + "'";
  record.threads = 64;
  record.batch = 1;
  record.seconds_original = 4.2e-3;
  record.seconds_final = 1.7e-3;
  record.speedup = {2.47, {2.41, 2.52}, 0.99, 1e-4};
  record.memory_original = 40 << 20;
  record.memory_final = 12 << 20;
  record.size_original = 30 << 20;
  record.size_final = 8 << 20;
  record.quality_original = 0.9312;
  record.quality_final = 0.9301;
  record.spent_seconds = 83;
  record.goals = {{"latency", "s", 1e-3, 1.7e-3, false, {"compression: " + kOdd, "hardware: twice as fast"}},
                  {"memory", "B", 50 << 20, 12 << 20, true, {}},
                  {"loss", "fraction", 0.005, 0.0011, true, {}}};
  for (int i = 0; i < 3; ++i) {
    PointRecord point{.name = kOdd, .file = {}, .ratio = {0.4 + 0.2 * i, {0.4, 0.9}, 0.99}, .seconds = 1e-3 * (i + 1)};
    point.memory = point.size = (3 - i) << 20;
    point.quality = 0.9;
    point.chosen = i == 0;
    point.allowed = i != 2;
    record.front.push_back(std::move(point));
  }
  for (int i = 0; i < 30; ++i) record.steps.push_back(make_step_record(i % 3 == 0, i % 3 != 2));
  for (int i = 0; i < 400; ++i) record.layers.push_back(make_layer_record(i));
  for (const char* name : {"before", "after"}) {
    Series series{name, "node", "B", {}, {}};
    for (int i = 0; i < 20'000; ++i) {
      series.x.push_back(i);
      series.y.push_back((1 << 20) * (1 + i % 97) * (name[0] == 'b' ? 2.0 : 1.0));
    }
    record.memory_over_time.push_back(std::move(series));
  }
  return record;
}

}  // namespace lissome

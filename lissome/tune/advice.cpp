#include "lissome/tune/advice.h"

#include <algorithm>
#include <cstdio>

#include "lissome/base.h"

namespace lissome {
namespace {

bool was_accepted(const OptimizationRecord& record, std::string_view word) {
  return std::any_of(record.steps.begin(), record.steps.end(), [&](const StepRecord& step) {
    return step.accepted && step.name.find(word) != std::string::npos;
  });
}

std::string format_factor(double factor) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", factor);
  return text;
}

std::vector<std::string> advise_latency(const GoalRecord& goal, const OptimizationRecord& record) {
  std::vector<std::string> advice;
  const double factor = goal.measured / std::max(goal.target, 1e-12);
  advice.push_back("compression: the model must do about " + format_factor(factor) +
                   " times less work; prune or distil it, then optimize again");
  if (!was_accepted(record, "int8")) {
    advice.push_back(
        "stronger quantization: int8 was not taken; allow more loss (--max-loss) or give more calibration data");
  }
  advice.push_back("hardware: a processor about " + format_factor(factor) + " times as fast on this model");
  return advice;
}

std::vector<std::string> advise_memory(const OptimizationRecord& record) {
  std::vector<std::string> advice;
  if (record.batch > 1)
    advice.push_back("smaller batch: " + std::to_string(record.batch) + " -> " + std::to_string(record.batch / 2));
  if (!was_accepted(record, "int8")) advice.push_back("stronger quantization: int8 weights are a quarter of f32");
  advice.push_back("recomputation does not help inference: weights are " + format_bytes(record.size_final) + " of " +
                   format_bytes(record.memory_final) + "; compression takes fewer of them");
  return advice;
}

}  // namespace

std::vector<std::string> advise(const GoalRecord& goal, const OptimizationRecord& record) {
  if (goal.name == "latency") return advise_latency(goal, record);
  if (goal.name == "memory") return advise_memory(record);
  return {"allow more loss (--max-loss), or give more calibration data"};
}

std::string find_blocker(const GoalRecord& goal, const OptimizationRecord& record) {
  if (goal.name == "memory") {
    return "weights take " + format_bytes(record.size_final) + " of the " + format_bytes(record.memory_final) +
           " in use";
  }
  if (goal.name != "latency" || record.layers.empty()) return "the loss of quality";
  const auto slowest =
      std::max_element(record.layers.begin(), record.layers.end(),
                       [](const LayerRecord& a, const LayerRecord& b) { return a.seconds_after < b.seconds_after; });
  const std::string where = !slowest->module.empty()   ? slowest->module
                            : !slowest->source.empty() ? slowest->source
                                                       : slowest->op;
  return "the slowest layer alone, '" + where + "' (" + slowest->op + " by " + slowest->kernel + "), takes " +
         format_duration(slowest->seconds_after) + " of the " + format_duration(record.seconds_final) +
         "; the goal is " + format_duration(goal.target);
}

}  // namespace lissome

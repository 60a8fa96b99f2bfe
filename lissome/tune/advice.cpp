#include "lissome/tune/advice.h"

#include <algorithm>
#include <cstdio>

#include "lissome/base.h"
#include "lissome/tune/record.h"

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

// Advice on getting int8, by the reason why it was not accepted; empty if it was, or if nothing would help.
std::string advise_int8(const OptimizationRecord& record) {
  if (was_accepted(record, "int8")) return {};
  const auto find = [&](std::string_view word, std::string_view reason) {
    return std::any_of(record.steps.begin(), record.steps.end(), [&](const StepRecord& step) {
      return step.name.find(word) != std::string::npos && step.reason.find(reason) != std::string::npos;
    });
  };
  if (find("int8", "--data")) return "stronger quantization: int8 was not tried without data; give --data";
  if (find("int8", kNoTimeLeft))
    return "stronger quantization: int8 was left out for lack of time; give a longer --time";
  if (find("int8", "is allowed")) {
    return "stronger quantization: int8 loses more than is allowed; allow more (--max-loss) or give more calibration "
           "data";
  }
  return {};
}

std::vector<std::string> advise_latency(const GoalRecord& goal, const OptimizationRecord& record) {
  std::vector<std::string> advice;
  const double factor =
      goal.at_least ? goal.target / std::max(goal.measured, 1e-12) : goal.measured / std::max(goal.target, 1e-12);
  advice.push_back("compression: the model must do about " + format_factor(factor) +
                   " times less work; prune or distil it, then optimize again");
  if (const std::string int8 = advise_int8(record); !int8.empty()) advice.push_back(int8);
  advice.push_back("hardware: use a processor that is about " + format_factor(factor) + " times as fast on this model");
  return advice;
}

std::vector<std::string> advise_memory(const OptimizationRecord& record) {
  std::vector<std::string> advice;
  if (record.batch > 1)
    advice.push_back("smaller batch: use " + std::to_string(record.batch / 2) + " samples instead of " +
                     std::to_string(record.batch));
  if (const std::string int8 = advise_int8(record); !int8.empty()) advice.push_back(int8);
  advice.push_back("recomputation does not help inference: weights are " + format_bytes(record.size_final) + " of " +
                   format_bytes(record.memory_final) + "; compression makes them smaller");
  return advice;
}

// Advice on getting weights of 4 bits, by the reason why they were not kept; empty if they were, or were not tried.
std::string advise_int4(const OptimizationRecord& record) {
  if (was_accepted(record, "int4")) return {};
  const auto step = std::find_if(record.steps.begin(), record.steps.end(),
                                 [](const StepRecord& one) { return one.name.find("int4") != std::string::npos; });
  if (step == record.steps.end()) return {};
  const bool loses = step->reason.find("is allowed") != std::string::npos;
  return "stronger quantization: weights of 4 bits were not kept: " + step->reason +
         (loses ? "; allow more loss (--max-loss)" : "");
}

std::vector<std::string> advise_size(const OptimizationRecord& record) {
  std::vector<std::string> advice;
  if (const std::string int4 = advise_int4(record); !int4.empty()) advice.push_back(int4);
  advice.push_back("compression: weights are " + format_bytes(record.size_final) + " of the " +
                   format_bytes(record.file_bytes) + " of the file; prune or distil the model, then optimize again");
  return advice;
}

std::vector<std::string> advise_first_answer(const OptimizationRecord& record) {
  return {"a smaller file: weights of " + format_bytes(record.size_final) +
          " are read from the disk; fewer bits or fewer layers are read sooner"};
}

}  // namespace

std::vector<std::string> advise(const GoalRecord& goal, const OptimizationRecord& record) {
  if (goal.name == "latency") return advise_latency(goal, record);
  if (goal.name == "memory") return advise_memory(record);
  if (goal.name == "size") return advise_size(record);
  if (goal.name == "throughput") return advise_latency(goal, record);
  if (goal.name == "first answer") return advise_first_answer(record);
  return {"allow more loss (--max-loss), or give more calibration data"};
}

std::string find_blocker(const GoalRecord& goal, const OptimizationRecord& record) {
  if (goal.name == "memory") {
    return "weights take " + format_bytes(record.size_final) + " of the " + format_bytes(record.memory_final) +
           " in use";
  }
  if (goal.name == "size" || goal.name == "first answer")
    return "weights take " + format_bytes(record.size_final) + " of the file's " + format_bytes(record.file_bytes);
  if (goal.name == "loss" || record.layers.empty()) return "the loss of quality";
  const auto slowest =
      std::max_element(record.layers.begin(), record.layers.end(),
                       [](const LayerRecord& a, const LayerRecord& b) { return a.seconds_after < b.seconds_after; });
  const std::string where = !slowest->module.empty()   ? slowest->module
                            : !slowest->source.empty() ? slowest->source
                                                       : slowest->op;
  // Layers are timed in other calls than the whole model, so only their share can be compared.
  double all = 0;
  for (const LayerRecord& layer : record.layers) all += layer.seconds_after;
  const double share = slowest->seconds_after / std::max(all, 1e-12);
  return "the slowest layer alone, '" + where + "' (" + slowest->op + " by " + slowest->kernel + "), takes " +
         format_percent(share) + " of the " + format_duration(record.seconds_final) +
         (goal.at_least ? std::string() : "; the goal is " + format_duration(goal.target));
}

}  // namespace lissome

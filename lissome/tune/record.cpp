#include "lissome/tune/record.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "lissome/base.h"
#include "lissome/tune/advice.h"
#include "lissome/tune/front.h"
#include "lissome/tune/goals.h"
#include "lissome/tune/layers.h"

namespace lissome {
namespace {

constexpr int kFinalRounds = 200;
constexpr size_t kLeastFinalRounds = 8;  // an interval of 99 % needs so many pairs; fewer are left when time is up
constexpr double kFinalSeconds = 10;
constexpr double kFinalShare = 0.1;  // largest share of --time for the final measurement

void take_known_totals(OptimizationRecord& record, const Variant& original, const Variant& best) {
  record.size_original = count_weight_bytes(original);
  record.size_final = count_weight_bytes(best);
  record.quality_original = original.quality;
  record.quality_final = best.quality;
  record.threads = best.session->threads();
}

// Each accepted step was measured against the best version before it, so the ratios multiply, and so do the bounds of
// their intervals. The product holds with a confidence of at least 1 minus the sum of the steps' error probabilities.
void chain_steps(OptimizationRecord& record) {
  Ratio whole{1, {1, 1}, 1};  // after / before
  bool first = true;
  for (const StepRecord& step : record.steps) {
    if (step.seconds_before <= 0) continue;  // the step was not measured
    if (first) {
      record.seconds_original = record.seconds_final = step.seconds_before;
      record.memory_original = record.memory_final = step.memory_before;
      first = false;
    }
    if (!step.accepted) continue;
    record.seconds_final = step.seconds_after;
    record.memory_final = step.memory_after;
    whole = chain_ratios(whole, step.ratio);
  }
  record.speedup = whole;
  record.speedup.median = 1 / whole.median;
  record.speedup.interval = {1 / whole.interval.high, 1 / whole.interval.low};
}

void note_gain_times(OptimizationRecord& record) {
  constexpr double kMost = 0.9;
  double whole = 1;  // time after all kept steps / before them
  for (const StepRecord& step : record.steps) whole *= step.accepted ? step.ratio.median : 1;
  double so_far = 1;
  for (const StepRecord& step : record.steps) {
    if (!step.accepted) continue;
    so_far *= step.ratio.median;
    if (!record.first_answer_seconds) record.first_answer_seconds = step.finished_seconds;
    const bool has_most = 1 / so_far - 1 >= kMost * (1 / whole - 1);
    if (whole < 1 && has_most && !record.most_gain_seconds) record.most_gain_seconds = step.finished_seconds;
  }
}

void measure_totals(OptimizationRecord& record, Variant& original, Variant& best, const Bench& bench,
                    const OptimizeOptions& options, const std::function<bool()>& out_of_time) {
  InterleaveOptions interleave;
  interleave.warmup = 5;
  interleave.rounds = kFinalRounds;
  interleave.least_rounds = 20;
  interleave.seconds = std::min(kFinalSeconds, kFinalShare * options.seconds);
  interleave.confidence = 0.99;
  interleave.should_stop = out_of_time;
  const Interleaved timing = compare_interleaved(
      {{"best", [&] { best.session->run(bench.views); }}, {"original", [&] { original.session->run(bench.views); }}},
      interleave);
  record.seconds_final = timing.summaries[0].median;
  record.seconds_original = timing.summaries[1].median;
  if (timing.seconds[0].size() >= kLeastFinalRounds) {
    record.speedup = timing.ratios[1];
  } else {
    OptimizationRecord chained = record;
    chain_steps(chained);
    record.speedup = chained.speedup;
  }
  record.memory_original = measure_memory(original, bench);
  record.memory_final = measure_memory(best, bench);
  take_known_totals(record, original, best);
}

// The goals that the original met already.
std::string list_goals_met_before(const OptimizationRecord& record) {
  std::vector<std::string> names;
  for (const GoalRecord& goal : record.goals) {
    const bool before = goal.name == "latency"  ? record.seconds_original <= goal.target
                        : goal.name == "memory" ? static_cast<double>(record.memory_original) <= goal.target
                                                : false;
    if (before && goal.met) names.push_back(goal.name);
  }
  return join(names, ", ");
}

std::string tell_left_out_for_time(const OptimizationRecord& record) {
  size_t measured = 0, left_out = 0;
  for (const StepRecord& step : record.steps) {
    if (step.reason.starts_with(kNoTimeLeft)) {
      ++left_out;
    } else if (step.seconds_before > 0) {
      ++measured;
    }
  }
  if (left_out == 0) return {};
  return "; stopped by --time after " + std::to_string(measured) + " of " + std::to_string(measured + left_out) +
         " steps";
}

}  // namespace

std::string make_answer(const OptimizationRecord& record) {
  if (record.seconds_original <= 0) return "interrupted before a step was measured: this is the original";
  char text[256];
  const bool faster = record.speedup.interval.low > 1, slower = record.speedup.interval.high < 1;
  if (faster || slower) {
    // The factor is the median over pairs of calls. It may differ from the quotient of the two medians beside it.
    const auto factor = [&](double speedup) { return faster ? speedup : 1 / speedup; };
    const auto [low, high] = std::minmax({factor(record.speedup.interval.low), factor(record.speedup.interval.high)});
    std::snprintf(text, sizeof text, "%.2f times %s (median of pairs; %.2f to %.2f): %s instead of %s, ",
                  factor(record.speedup.median), faster ? "faster" : "slower", low, high,
                  format_duration(record.seconds_final).c_str(), format_duration(record.seconds_original).c_str());
  } else {
    std::snprintf(text, sizeof text, "not faster beyond noise: %s against %s, ",
                  format_duration(record.seconds_final).c_str(), format_duration(record.seconds_original).c_str());
  }
  std::string answer = text;
  answer += format_bytes(record.memory_final) + " of memory instead of " + format_bytes(record.memory_original);
  if (record.quality_final) {
    std::snprintf(text, sizeof text, ", %s %.4f (was %.4f)", record.metric.c_str(), *record.quality_final,
                  *record.quality_original);
    answer += text;
  }
  int missed = 0;
  std::string names;
  for (const GoalRecord& goal : record.goals) {
    if (goal.met) continue;
    names += (missed++ == 0 ? "" : ", ") + goal.name;
  }
  if (const std::string before = list_goals_met_before(record); !before.empty()) {
    answer += "; the original met the goal already: " + before;
  }
  if (record.samples_per_second) {
    std::snprintf(text, sizeof text, "; %.4g samples a second in calls of %lld", *record.samples_per_second,
                  static_cast<long long>(record.throughput_batch));
    answer += text;
  }
  if (record.interrupted) answer += "; interrupted: this is the best so far";
  answer += tell_left_out_for_time(record);
  return missed > 0 ? answer + "; goal not met: " + names : answer;
}

namespace {

Json goal_to_json(const GoalRecord& goal) {
  return {{"name", goal.name}, {"unit", goal.unit},         {"target", goal.target}, {"measured", goal.measured},
          {"met", goal.met},   {"at_least", goal.at_least}, {"advice", goal.advice}};
}

Json ratio_to_json(const Ratio& ratio) {
  return {{"median", ratio.median},
          {"interval", {ratio.interval.low, ratio.interval.high}},
          {"confidence", ratio.confidence}};
}

Json optional_to_json(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

Json step_to_json(const StepRecord& step) {
  return {{"stage", step.stage},
          {"name", step.name},
          {"accepted", step.accepted},
          {"reason", step.reason},
          {"seconds_before", step.seconds_before},
          {"seconds_after", step.seconds_after},
          {"ratio", ratio_to_json(step.ratio)},
          {"memory_before", step.memory_before},
          {"memory_after", step.memory_after},
          {"size_before", step.size_before},
          {"size_after", step.size_after},
          {"quality_before", optional_to_json(step.quality_before)},
          {"quality_after", optional_to_json(step.quality_after)},
          {"spent_seconds", step.spent_seconds},
          {"finished_seconds", step.finished_seconds},
          {"notes", step.notes}};
}

Json layer_to_json(const LayerRecord& layer) {
  return {{"module", layer.module},
          {"source", layer.source},
          {"code", layer.code},
          {"op", layer.op},
          {"kernel", layer.kernel},
          {"dtype", layer.dtype},
          {"seconds_before", layer.seconds_before},
          {"seconds_after", layer.seconds_after},
          {"bytes", layer.bytes}};
}

}  // namespace

namespace {

Json quantized_layer_to_json(const QuantizedLayer& layer) {
  const bool fixed = layer.range.has_scale();
  return {{"layer", name_layer(layer)},
          {"op", layer.op},
          {"quantized", layer.quantized},
          {"signal_to_noise", layer.signal_to_noise != 0 ? Json(layer.signal_to_noise) : Json()},
          {"clipped", fixed ? Json(layer.range.clipped) : Json()},
          {"reach", fixed ? Json(layer.range.reach) : Json()},
          {"reason", layer.reason}};
}

void add_metadata(ModelFile& file, const char* name, Json value) {
  Json metadata = file.metadata.empty() ? Json::object() : parse_json(file.metadata, "metadata");
  metadata[name] = std::move(value);
  file.metadata = print_json(metadata);
}

}  // namespace

ModelFile pack_with_record(const Program& program, const Plan& plan, const Json& record, FileContents contents) {
  ModelFile file = pack_prepared(program, plan, contents);
  if (!record.is_null()) add_metadata(file, "optimization", record);
  return file;
}

Json to_json(const std::optional<PrecisionForm::Accuracy>& accuracy) {
  if (!accuracy) return {};
  return {{"f32", accuracy->f32}, {"quantized", accuracy->form}, {"samples", accuracy->samples}};
}

ModelFile pack_form(const PrecisionForm& form, FileContents contents) {
  ModelFile file = pack_prepared(*form.program, *form.plan, contents);
  Json layers = Json::array();
  for (const QuantizedLayer& layer : form.layers) layers.push_back(quantized_layer_to_json(layer));
  add_metadata(file, "precision",
               {{"how", form.how},
                {"relative_error", form.error ? Json(*form.error) : Json()},
                {"accuracy", to_json(form.accuracy)},
                {"notes", form.notes},
                {"layers", std::move(layers)}});
  return file;
}

namespace {

void judge_record(OptimizationRecord& record, const OptimizeOptions& options) {
  judge_goals(record, options);
  for (const GoalRecord& goal : record.goals) {
    if (!goal.met && record.blocker.empty()) record.blocker = find_blocker(goal, record);
  }
  record.answer = make_answer(record);
}

}  // namespace

void complete_record(OptimizationRecord& record, Variant& original, Variant& best, const Bench& bench,
                     const OptimizeOptions& options, const WorkControl& control,
                     const std::function<bool()>& out_of_time) {
  measure_totals(record, original, best, bench, options, out_of_time);
  note_gain_times(record);
  measure_goals(record, best, bench, options, control);
  if (control.stopped()) return;
  record.layers = compare_layers(original, best, bench, out_of_time);
  record.memory_over_time = {trace_memory("before", *original.program, bench),
                             trace_memory("after", *best.program, bench)};
}

// The file says in its record how large it is. The record is compressed, so another number may take another byte, and
// two sizes may each lead to the other; then the time of the search has fewer digits, and the sizes are others.
void judge_with_file(OptimizationRecord& record, const Variant& best, const OptimizeOptions& options) {
  constexpr int kMostCounts = 3;
  OptimizationRecord unjudged = record;
  const auto judge_as = [&](int64_t bytes) {
    record = unjudged;
    record.file_bytes = bytes;
    judge_record(record, options);
  };
  for (const double digits : {1e6, 1e5, 1e4, 1e3, 1e2}) {
    unjudged.spent_seconds = std::round(unjudged.spent_seconds * digits) / digits;
    judge_as(record.file_bytes);
    for (int i = 0; i < kMostCounts; ++i) {
      const ModelFile file = pack_with_record(*best.program, *best.plan, to_json(record), FileContents::plan);
      const int64_t counted = count_model_file(file);
      if (counted == record.file_bytes) return;
      judge_as(counted);
    }
  }
}

void describe_steps_so_far(OptimizationRecord& record, const Variant& original, const Variant& best,
                           const OptimizeOptions& options) {
  take_known_totals(record, original, best);
  chain_steps(record);
  note_gain_times(record);
  if (record.seconds_original > 0) judge_goals(record, options);
  record.answer = make_answer(record);
}

Json to_json(const OptimizationRecord& record) {
  Json json = {{"answer", record.answer},
               {"model", record.model},
               {"metric", record.metric},
               {"machine", record.machine},
               {"command", record.command},
               {"data", record.data_note},
               {"seed", record.seed},
               {"threads", record.threads},
               {"batch", record.batch},
               {"seconds_original", record.seconds_original},
               {"seconds_final", record.seconds_final},
               {"speedup", ratio_to_json(record.speedup)},
               {"memory_original", record.memory_original},
               {"memory_final", record.memory_final},
               {"size_original", record.size_original},
               {"size_final", record.size_final},
               {"quality_original", optional_to_json(record.quality_original)},
               {"quality_final", optional_to_json(record.quality_final)},
               {"blocker", record.blocker},
               {"interrupted", record.interrupted},
               {"first_answer_seconds", optional_to_json(record.first_answer_seconds)},
               {"most_gain_seconds", optional_to_json(record.most_gain_seconds)},
               {"spent_seconds", record.spent_seconds}};
  json["file_bytes"] = record.file_bytes;
  json["samples_per_second"] = optional_to_json(record.samples_per_second);
  json["throughput_batch"] = record.samples_per_second ? Json(record.throughput_batch) : Json();
  json["first_answer"] = optional_to_json(record.first_answer);
  json["front"] = Json::array();
  for (const PointRecord& point : record.front) json["front"].push_back(to_json(point));
  json["goals"] = json["steps"] = json["layers"] = Json::array();
  for (const GoalRecord& goal : record.goals) json["goals"].push_back(goal_to_json(goal));
  for (const StepRecord& step : record.steps) json["steps"].push_back(step_to_json(step));
  for (const LayerRecord& layer : record.layers) json["layers"].push_back(layer_to_json(layer));
  return json;
}

}  // namespace lissome

// See training_metrics.h.
#include "lissome/train/loop/training_metrics.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "lissome/base.h"
#include "lissome/train/loop/validation.h"

namespace lissome {
namespace {

constexpr int64_t kMostSamplesMeasured = 1000;

// So many samples at equal distances: files often have one class behind the other.
Dataset spread_samples(const Dataset& data, int64_t count) {
  Dataset spread = data;
  spread.rows.clear();
  for (int64_t i = 0; i < count; ++i) spread.rows.push_back(data.rows[static_cast<size_t>(i * data.samples() / count)]);
  return spread;
}

}  // namespace

std::string describe_training_metrics(const std::vector<std::pair<std::string, double>>& metrics, int64_t samples) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : metrics) {
    char number[32];
    std::snprintf(number, sizeof number, "%.4g", value);
    texts.push_back(name + " " + (name == "accuracy" ? format_percent(value) : number));
  }
  return join(texts, ", ") + " on " + std::to_string(samples) +
         " of the training samples; use --validation to measure on other samples";
}

TrainingMetrics measure_training(const TrainingModel& model, const Dataset& data, int64_t trained, int64_t at_once,
                                 const TrainOptions& options, const WorkControl& control) {
  if (options.memory > 0 || options.batches.source) return {};
  const int64_t affordable = std::max(trained / 10, at_once);
  const Dataset seen = spread_samples(data, std::min({data.samples(), affordable, kMostSamplesMeasured}));
  std::optional<ValidationResult> result;
  try {
    result = validate(model.judged, seen, at_once, model.least_judged, options, control);
  } catch (const Error& error) {  // for example weights for which a value leaves the range of an op
    return {{}, "the metrics of the trained model on its training samples cannot be measured: " + error.message()};
  }
  if (!result || result->metrics.empty()) return {};
  return {result->metrics, describe_training_metrics(result->metrics, seen.samples())};
}

}  // namespace lissome

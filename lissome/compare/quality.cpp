#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "lissome/compare.h"

namespace lissome {
namespace {

struct MetricRow {
  Metric metric;
  std::string_view name;
  bool higher_is_better;
};
constexpr std::array<MetricRow, 4> kMetrics = {{{Metric::top1, "top1", true},
                                                {Metric::cosine, "cosine", true},
                                                {Metric::relative_error, "rel_error", false},
                                                {Metric::mean_squared_error, "mse", false}}};

const MetricRow& find_row(Metric metric) {
  return *std::find_if(kMetrics.begin(), kMetrics.end(), [&](const MetricRow& row) { return row.metric == metric; });
}

std::span<const float> read_row(const OutputRows& rows, int64_t sample) {
  return {rows.values.data() + sample * rows.width, static_cast<size_t>(rows.width)};
}

int64_t find_largest(std::span<const float> row) {
  // A row that holds NaN has no largest element: it agrees with no class.
  if (std::any_of(row.begin(), row.end(), [](float x) { return std::isnan(x); })) return -1;
  return std::max_element(row.begin(), row.end()) - row.begin();
}

enum class Pair : uint8_t { finite, same, different };

// Two elements that are NaN, or the same infinity (of a masked score), agree; nothing can be computed of them.
Pair judge_pair(float a, float b) {
  if (std::isfinite(a) && std::isfinite(b)) return Pair::finite;
  return a == b || (std::isnan(a) && std::isnan(b)) ? Pair::same : Pair::different;
}

double measure_cosine(std::span<const float> a, std::span<const float> b) {
  double dot = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const Pair pair = judge_pair(a[i], b[i]);
    if (pair == Pair::different) return 0;
    if (pair == Pair::same) continue;
    dot += static_cast<double>(a[i]) * b[i];
    aa += static_cast<double>(a[i]) * a[i];
    bb += static_cast<double>(b[i]) * b[i];
  }
  if (aa == 0 && bb == 0) return 1;
  const double cosine = dot / std::sqrt(aa * bb);
  return std::isfinite(cosine) ? cosine : 0;
}

double measure_squared_difference(const OutputRows& a, const OutputRows& b) {
  double sum = 0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    const Pair pair = judge_pair(a.values[i], b.values[i]);
    if (pair == Pair::different) return INFINITY;
    if (pair == Pair::same) continue;
    const double difference = static_cast<double>(a.values[i]) - b.values[i];
    sum += difference * difference;
  }
  return std::isfinite(sum) ? sum : INFINITY;
}

std::vector<int64_t> read_classes(const Array& labels) {
  std::vector<int64_t> classes(static_cast<size_t>(labels.elements()));
  std::memcpy(classes.data(), labels.data<int64_t>(), classes.size() * sizeof(int64_t));
  return classes;
}

// `labels`: f32 [samples, ...].
OutputRows read_targets(const Array& labels) {
  OutputRows rows;
  rows.samples = labels.sizes.empty() ? 0 : labels.sizes.front();
  rows.width = rows.samples == 0 ? 0 : labels.elements() / rows.samples;
  rows.values.assign(labels.data<float>(), labels.data<float>() + labels.elements());
  return rows;
}

}  // namespace

bool has_classes(const Dataset& dataset) {
  return dataset.labels && dataset.labels->dtype == Dtype::i64 && dataset.labels->sizes.size() == 1;
}

bool OutputRows::are_scores() const {
  return width > 1 && std::ranges::count_if(sizes, [](int64_t size) { return size != 1; }) <= 1;
}

std::string refuse_classes(const Dataset& dataset, const OutputRows& outputs) {
  if (!outputs.are_scores())
    return "labels are classes, one for each sample, but the first output has the sizes " +
           format_sizes(outputs.sizes) + " a sample; top1 takes one score for each of two or more classes";
  for (const int64_t label : read_classes(take_labels(dataset, 0, dataset.samples()))) {
    if (label >= 0 && label < outputs.width) continue;
    return "a label is " + std::to_string(label) + ", the model's output has " + std::to_string(outputs.width) +
           " elements a sample: 0 to " + std::to_string(outputs.width - 1) + " are classes";
  }
  return {};
}

std::string explain_unused_labels(const Dataset& dataset, const OutputRows& outputs) {
  if (!dataset.labels || dataset.labels->dtype != Dtype::i64) return {};
  if (!has_classes(dataset))
    return "labels have the sizes " + format_sizes(dataset.labels->sizes) +
           "; top1 takes one integer for each sample, its class";
  if (!outputs.are_scores()) return refuse_classes(dataset, outputs);
  constexpr int64_t kIgnored = -100;  // PyTorch's
  const std::vector<int64_t> classes = read_classes(take_labels(dataset, 0, dataset.samples()));
  const auto ignored = std::ranges::count(classes, kIgnored);
  if (ignored == 0) return {};
  return std::to_string(ignored) + " of " + std::to_string(classes.size()) +
         " labels are -100, which marks samples that do not count; top1 takes a class for each";
}

Metric parse_metric(std::string_view name) {
  std::vector<std::string> known;
  for (const MetricRow& row : kMetrics) {
    if (row.name == name) return row.metric;
    known.emplace_back(row.name);
  }
  const std::string nearest = find_nearest(name, known);
  throw_error(ErrorKind::usage, "unknown metric '", name, "'; allowed: ", join(known, ", "),
              nearest.empty() ? std::string() : ". Did you mean '" + nearest + "'?");
}

std::string_view metric_name(Metric metric) { return find_row(metric).name; }
bool is_higher_better(Metric metric) { return find_row(metric).higher_is_better; }

QualityJudge::QualityJudge(Metric metric, const Dataset& dataset, OutputRows original) : metric_(metric) {
  if (dataset.labels) {
    const Array labels = take_labels(dataset, 0, dataset.samples());
    const bool classes = labels.dtype == Dtype::i64 && labels.sizes.size() == 1;
    if (metric == Metric::top1 && classes) {
      if (const std::string refusal = refuse_classes(dataset, original); !refusal.empty())
        throw_error(ErrorKind::invalid_input, dataset.source, ": ", refusal);
      classes_ = read_classes(labels);
      labelled_ = true;
    } else if (metric == Metric::top1) {
      throw_error(ErrorKind::usage, dataset.source, ": labels are ", dtype_name(labels.dtype),
                  format_sizes(labels.sizes), "; top1 takes one integer for each sample, its class");
    } else if (is_floating(labels.dtype)) {
      targets_ = read_targets(cast_array(labels.view(), Dtype::f32));
      labelled_ = targets_.width == original.width;
      if (!labelled_) {
        throw_error(ErrorKind::invalid_input, dataset.source, ": labels have ", targets_.width,
                    " elements a sample, the model's output has ", original.width);
      }
    }
  }
  if (!labelled_) targets_ = original;
  original_quality_ = measure(original);
}

double QualityJudge::measure(const OutputRows& outputs) const {
  LISSOME_CHECK(outputs.samples > 0, "no samples to judge");
  if (metric_ == Metric::top1) {
    int64_t right = 0;
    for (int64_t i = 0; i < outputs.samples; ++i) {
      const int64_t wanted = labelled_ ? classes_.at(static_cast<size_t>(i)) : find_largest(read_row(targets_, i));
      right += find_largest(read_row(outputs, i)) == wanted;
    }
    return static_cast<double>(right) / static_cast<double>(outputs.samples);
  }
  LISSOME_CHECK(outputs.values.size() == targets_.values.size(), "outputs and targets differ in size");
  if (metric_ == Metric::cosine) {
    double sum = 0;
    for (int64_t i = 0; i < outputs.samples; ++i) sum += measure_cosine(read_row(outputs, i), read_row(targets_, i));
    return sum / static_cast<double>(outputs.samples);
  }
  const double squared = measure_squared_difference(outputs, targets_);
  if (metric_ == Metric::mean_squared_error) return squared / static_cast<double>(outputs.values.size());
  double norm = 0;
  for (float value : targets_.values) norm += std::isfinite(value) ? static_cast<double>(value) * value : 0;
  return squared == 0 ? 0 : std::sqrt(squared / norm);
}

double QualityJudge::loss(double quality) const {
  return is_higher_better(metric_) ? original_quality_ - quality : quality - original_quality_;
}

std::string QualityJudge::describe() const {
  const int64_t samples =
      labelled_ && metric_ == Metric::top1 ? static_cast<int64_t>(classes_.size()) : targets_.samples;
  const std::string count = std::to_string(samples) + " held-out samples";
  if (labelled_) return std::string(metric_name(metric_)) + " against the labels of " + count;
  return std::string(metric_name(metric_)) + " against the original model on " + count;
}

}  // namespace lissome

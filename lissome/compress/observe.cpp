// Ranges of activations, from two runs over the calibration batches: the first finds the extremes, the second fills one
// histogram a value, from which the range is chosen. Memory is one histogram a value, whatever the number of batches.
#include <ATen/core/ivalue.h>
#include <ATen/ops/histc.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lissome/compress.h"

namespace lissome {
namespace {

constexpr int64_t kBins = 2048;
constexpr double kTail = 1e-4;  // share of values that the percentile method cuts on either side

struct Histogram {
  double low = 0, high = 0;
  std::vector<double> counts;
  double center(size_t bin) const { return low + (static_cast<double>(bin) + 0.5) * width(); }
  double width() const { return (high - low) / static_cast<double>(counts.size()); }
};

// Visits the tensors of the observed values on every batch. Inputs of the program are values too.
void visit_values(const Program& program, const std::map<ValueId, size_t>& wanted, const CalibrationBatches& batches,
                  const WorkControl& control, const std::function<void(size_t, const at::Tensor&)>& visit) {
  for (const std::vector<c10::IValue>& batch : batches) {
    if (control.stopped()) return;
    for (size_t i = 0; i < program.inputs.size() && i < batch.size(); ++i) {
      const auto entry = wanted.find(program.inputs[i].value);
      if (entry != wanted.end() && batch[i].isTensor()) visit(entry->second, batch[i].toTensor());
    }
    InterpretOptions options;
    options.observe = [&](const Node& node, std::span<const c10::IValue> results) {
      for (size_t i = 0; i < node.results.size() && i < results.size(); ++i) {
        const auto entry = wanted.find(node.results[i]);
        if (entry != wanted.end() && results[i].isTensor()) visit(entry->second, results[i].toTensor());
      }
    };
    interpret(program, batch, options);
  }
}

ActivationRange include_zero(double low, double high) { return {std::min(low, 0.0), std::max(high, 0.0)}; }

ActivationRange choose_percentile(const Histogram& histogram) {
  double total = 0;
  for (double count : histogram.counts) total += count;
  size_t first = 0, last = histogram.counts.size() - 1;
  for (double cut = histogram.counts[first]; cut <= kTail * total && first < last;) cut += histogram.counts[++first];
  for (double cut = histogram.counts[last]; cut <= kTail * total && last > first;) cut += histogram.counts[--last];
  return include_zero(histogram.low + static_cast<double>(first) * histogram.width(),
                      histogram.low + static_cast<double>(last + 1) * histogram.width());
}

// The squared error of quantizing the histogram's values to 256 levels over the range: rounding inside, clipping
// outside.
double find_squared_error(const Histogram& histogram, const ActivationRange& range) {
  const double scale = range.scale();
  double error = 0;
  for (size_t bin = 0; bin < histogram.counts.size(); ++bin) {
    if (histogram.counts[bin] == 0) continue;
    const double value = histogram.center(bin);
    const double distance = value < range.low ? range.low - value : value > range.high ? value - range.high : 0;
    error += histogram.counts[bin] * (distance > 0 ? distance * distance : scale * scale / 12);
  }
  return error;
}

// Both ends shrink independently, coarse to fine: the error is nearly convex in each.
ActivationRange choose_least_error(const Histogram& histogram) {
  ActivationRange best = include_zero(histogram.low, histogram.high);
  const ActivationRange whole = best;
  double least = find_squared_error(histogram, best);
  for (int low_step = 0; low_step < 32; ++low_step) {
    for (int high_step = 0; high_step < 64; ++high_step) {
      const ActivationRange range{whole.low * (1 - low_step / 32.0), whole.high * (1 - high_step / 64.0)};
      if (range.high - range.low <= 0) continue;
      const double error = find_squared_error(histogram, range);
      if (error < least) {
        least = error;
        best = range;
      }
    }
    if (whole.low == 0) break;
  }
  return best;
}

}  // namespace

int64_t ActivationRange::zero_point() const {
  if (high <= low) return 0;
  return std::clamp<int64_t>(std::llround(-low / scale()), 0, 255);
}

std::vector<ActivationRange> observe_ranges(const Program& program, const std::vector<ValueId>& values,
                                            const CalibrationBatches& batches, RangeMethod method,
                                            const WorkControl& control) {
  std::map<ValueId, size_t> wanted;
  for (size_t i = 0; i < values.size(); ++i) wanted.emplace(values[i], i);
  std::vector<Histogram> histograms(values.size());
  std::vector<bool> seen(values.size(), false);
  visit_values(program, wanted, batches, control, [&](size_t index, const at::Tensor& tensor) {
    if (tensor.numel() == 0) return;
    const auto [low, high] = tensor.to(at::kDouble).aminmax();
    Histogram& histogram = histograms[index];
    histogram.low = seen[index] ? std::min(histogram.low, low.item().toDouble()) : low.item().toDouble();
    histogram.high = seen[index] ? std::max(histogram.high, high.item().toDouble()) : high.item().toDouble();
    seen[index] = true;
  });
  if (method != RangeMethod::minimum_maximum) {
    for (Histogram& histogram : histograms) histogram.counts.assign(static_cast<size_t>(kBins), 0);
    visit_values(program, wanted, batches, control, [&](size_t index, const at::Tensor& tensor) {
      Histogram& histogram = histograms[index];
      if (tensor.numel() == 0 || !(histogram.high > histogram.low)) return;
      const at::Tensor counts =
          at::histc(tensor.to(at::kFloat).contiguous(), kBins, histogram.low, histogram.high).to(at::kDouble);
      for (int64_t bin = 0; bin < kBins; ++bin)
        histogram.counts[static_cast<size_t>(bin)] += counts.const_data_ptr<double>()[bin];
    });
  }
  std::vector<ActivationRange> ranges;
  for (const Histogram& histogram : histograms) {
    const bool flat = !(histogram.high > histogram.low) || !std::isfinite(histogram.high - histogram.low);
    if (flat || method == RangeMethod::minimum_maximum) {
      ranges.push_back(include_zero(histogram.low, histogram.high));
    } else if (method == RangeMethod::percentile) {
      ranges.push_back(choose_percentile(histogram));
    } else {
      ranges.push_back(choose_least_error(histogram));
    }
  }
  return ranges;
}

}  // namespace lissome

// Metrics of outputs beside the loss: built-in ones and the user's own.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace lissome {

// A metric: its name, and a function that gives its mean over the samples of a batch. Batches are weighted by their
// number of samples.
struct TrainMetric {
  std::string name;
  std::function<double(const std::vector<at::Tensor>& outputs, const at::Tensor& labels)> measure;
};

// The fraction of samples whose largest score in the first output is that of the label: scores [n, classes], labels i64
// [n], or floats [n, classes], of which the largest counts.
TrainMetric make_accuracy();
// The mean of |first output - label|, over elements; both of the same sizes.
TrainMetric make_mean_absolute_error();

// The built-in metrics that fit the first output and the labels; they are always measured. `compares_classes`: the loss
// is cross entropy, whose outputs are scores.
std::vector<TrainMetric> choose_metrics(const at::Tensor& output, const at::Tensor& labels, bool compares_classes);

}  // namespace lissome

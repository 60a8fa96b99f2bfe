// How good outputs are, beside the loss: ready metrics and the user's own.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace lissome {

// A name, and the mean over the samples of a batch. Batches are weighted by their samples.
struct TrainMetric {
  std::string name;
  std::function<double(const std::vector<at::Tensor>& outputs, const at::Tensor& labels)> measure;
};

// The share of labels that the first output's largest score names: scores [n, classes], labels i64 [n], or floats
// [n, classes], of which the largest counts.
TrainMetric make_accuracy();
// The mean of |first output - label|, over elements; both of the same sizes.
TrainMetric make_mean_absolute_error();

// Which of these fit the first output and the labels: what is measured unasked. `compares_classes`: the loss is cross
// entropy, whose outputs are scores.
std::vector<TrainMetric> choose_metrics(const at::Tensor& output, const at::Tensor& labels, bool compares_classes);

}  // namespace lissome

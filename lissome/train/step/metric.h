// Metrics of outputs beside the loss: built-in ones and the user's own.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "lissome/train/step/loss.h"

namespace lissome {

// A metric: its name, and a function that gives its mean over the samples of a batch.
struct TrainMetric {
  std::string name;
  std::function<double(const std::vector<at::Tensor>& outputs, const at::Tensor& labels)> measure;
  // How much a batch counts; empty: its number of samples. A batch of weight 0 is not measured.
  std::function<double(const at::Tensor& labels)> weigh = {};
};

// The built-in metrics that fit the loss, the output that it compares (the first of the outputs that a metric is given)
// and the labels; they are always measured. At most one of:
//   accuracy             cross entropy: the fraction of labels, i64 [n, ...], that are the class of the largest score
//                        [n, classes, ...]; of floats [n, classes, ...] the largest counts; ignored labels do not. A
//                        loss of the model's own: the same for labels [n]. bce and bce_logits: the fraction of
//                        elements on the label's side of a probability of 0.5
//   mean_absolute_error  mse, l1, huber, or a loss of the model's own: over elements
std::vector<TrainMetric> choose_metrics(const LossOptions& loss, const at::Tensor& output, const at::Tensor& labels);

}  // namespace lissome

#include "lissome/train/step/metric.h"

namespace lissome {

TrainMetric make_accuracy() {
  return {"accuracy", [](const std::vector<at::Tensor>& outputs, const at::Tensor& labels) {
            const at::Tensor classes = labels.is_floating_point() ? labels.argmax(1) : labels;
            return outputs.at(0).argmax(1).eq(classes).to(at::kDouble).mean().item().toDouble();
          }};
}

TrainMetric make_mean_absolute_error() {
  return {"mean_absolute_error", [](const std::vector<at::Tensor>& outputs, const at::Tensor& labels) {
            return outputs.at(0).to(at::kDouble).sub(labels).abs().mean().item().toDouble();
          }};
}

std::vector<TrainMetric> choose_metrics(const at::Tensor& output, const at::Tensor& labels, bool compares_classes) {
  if (labels.scalar_type() == at::kLong && output.dim() == 2 && labels.dim() == 1) return {make_accuracy()};
  if (output.sizes() == labels.sizes() && output.dim() == 2 && compares_classes) return {make_accuracy()};
  if (output.sizes() == labels.sizes() && !compares_classes) return {make_mean_absolute_error()};
  return {};
}

}  // namespace lissome

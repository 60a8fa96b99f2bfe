// See metric.h.
#include "lissome/train/step/metric.h"

namespace lissome {
namespace {

// `dim`: that of the classes.
TrainMetric make_class_accuracy(int64_t dim, int64_t ignored) {
  const auto find_classes = [=](const at::Tensor& labels) {
    return labels.is_floating_point() ? labels.argmax(dim) : labels;
  };
  return {"accuracy",
          [=](const std::vector<at::Tensor>& outputs, const at::Tensor& labels) {
            const at::Tensor found = outputs.at(0).argmax(dim), classes = find_classes(labels).reshape(found.sizes());
            const at::Tensor counted = classes.ne(ignored), right = found.eq(classes).logical_and(counted);
            return right.sum().item().toDouble() / counted.sum().item().toDouble();
          },
          [=](const at::Tensor& labels) { return find_classes(labels).ne(ignored).sum().item().toDouble(); }};
}

// Whether labels are the classes of scores along this dimension: see attach_loss().
bool are_classes(const at::Tensor& labels, const at::Tensor& scores, int64_t dim) {
  if (scores.dim() < 2 || scores.size(dim) < 2) return false;
  if (labels.is_floating_point()) return dim == 1 && labels.sizes() == scores.sizes();
  Sizes positions = scores.sizes().vec();
  positions.erase(positions.begin() + (dim < 0 ? scores.dim() + dim : dim));
  return labels.scalar_type() == at::kLong && drop_ones(positions) == drop_ones(labels.sizes().vec());
}

// Labels [n] are those of outputs [n, 1], and so on: see attach_loss().
at::Tensor fit(const at::Tensor& labels, const at::Tensor& output) { return labels.reshape(output.sizes()); }

TrainMetric make_binary_accuracy(double threshold) {
  return {"accuracy", [=](const std::vector<at::Tensor>& outputs, const at::Tensor& labels) {
            const at::Tensor &output = outputs.at(0), expected = fit(labels, output);
            return output.gt(threshold).eq(expected.gt(0.5)).to(at::kDouble).mean().item().toDouble();
          }};
}

TrainMetric make_mean_absolute_error() {
  return {"mean_absolute_error", [](const std::vector<at::Tensor>& outputs, const at::Tensor& labels) {
            const at::Tensor& output = outputs.at(0);
            return output.to(at::kDouble).sub(fit(labels, output)).abs().mean().item().toDouble();
          }};
}

}  // namespace

std::vector<TrainMetric> choose_metrics(const LossOptions& loss, const at::Tensor& output, const at::Tensor& labels) {
  const bool has_classes = labels.scalar_type() == at::kLong;
  const bool of_samples = has_classes && output.dim() == 2 && output.size(1) > 1 && labels.dim() == 1;
  const bool same = output.sizes() == labels.sizes();
  const bool same_but_ones = drop_ones(output.sizes().vec()) == drop_ones(labels.sizes().vec());
  switch (loss.kind) {
    case LossKind::cross_entropy:
      for (const int64_t dim : {1, -1})
        if (are_classes(labels, output, dim)) return {make_class_accuracy(dim, loss.ignored_label)};
      return {};
    case LossKind::bce:
    case LossKind::bce_logits:
      if (same_but_ones) return {make_binary_accuracy(loss.kind == LossKind::bce ? 0.5 : 0)};
      return {};
    case LossKind::output:
      if (of_samples) return {make_class_accuracy(1, loss.ignored_label)};
      if (same && !has_classes) return {make_mean_absolute_error()};
      return {};
    default:
      if (same_but_ones) return {make_mean_absolute_error()};
      return {};
  }
}

}  // namespace lissome

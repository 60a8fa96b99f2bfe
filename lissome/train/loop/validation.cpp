#include "lissome/train/loop/validation.h"

#include <ATen/core/ivalue.h>

#include <algorithm>

#include "lissome/train/optim/accumulate.h"
#include "lissome/train/step/batches.h"

namespace lissome {
namespace {

// The outputs behind the loss; the one that it compares goes first.
std::vector<at::Tensor> list_outputs(const Program& program, const LossOptions& loss,
                                     const std::vector<c10::IValue>& results) {
  std::vector<at::Tensor> outputs;
  for (size_t i = 1; i < results.size(); ++i) {
    if (!results[i].isTensor()) continue;
    const bool is_compared = !loss.output.empty() && program.outputs.at(i).name == loss.output;
    outputs.insert(is_compared ? outputs.begin() : outputs.end(), results[i].toTensor());
  }
  return outputs;
}

// A mean over batches of different weight.
class WeightedMean {
 public:
  // `measure` is called for a batch that counts: a mean over nothing is NaN.
  void add(double weight, const auto& measure) {
    if (weight > 0) sum_ += measure() * weight;
    weight_ += weight;
  }
  double mean() const { return sum_ / weight_; }

 private:
  double sum_ = 0, weight_ = 0;
};

// The loss and the metrics of data that come batch by batch.
class Measurement {
 public:
  Measurement(const Program& program, const LossOptions& loss, const std::vector<TrainMetric>& asked)
      : program_(program), loss_(loss), asked_(asked) {}

  void add(const std::vector<at::Tensor>& inputs, bool has_labels) {
    const std::vector<c10::IValue> results = interpret(program_, {inputs.begin(), inputs.end()});
    const int64_t samples = inputs.front().size(0);
    const double weight = has_labels ? weigh_labels(loss_, inputs.back(), samples) : static_cast<double>(samples);
    mean_loss_.add(weight, [&] { return results.at(0).toTensor().item().toDouble(); });
    const std::vector<at::Tensor> outputs = list_outputs(program_, loss_, results);
    if (!has_labels || outputs.empty()) return;
    const at::Tensor& labels = inputs.back();
    if (means_.empty()) {
      metrics_ = choose_metrics(loss_, outputs[0], labels);
      metrics_.insert(metrics_.end(), asked_.begin(), asked_.end());
      means_.resize(metrics_.size());
    }
    for (size_t i = 0; i < metrics_.size(); ++i) {
      const TrainMetric& metric = metrics_[i];
      means_[i].add(metric.weigh ? metric.weigh(labels) : static_cast<double>(samples),
                    [&] { return metric.measure(outputs, labels); });
    }
  }

  ValidationResult result() const {
    ValidationResult result{mean_loss_.mean(), {}};
    for (size_t i = 0; i < metrics_.size(); ++i) result.metrics.emplace_back(metrics_[i].name, means_[i].mean());
    return result;
  }

 private:
  const Program& program_;
  const LossOptions& loss_;
  const std::vector<TrainMetric>& asked_;
  std::vector<TrainMetric> metrics_;
  WeightedMean mean_loss_;
  std::vector<WeightedMean> means_;
};

}  // namespace

std::optional<ValidationResult> validate(const Program& program, const Dataset& data, int64_t batch, int64_t least,
                                         const TrainOptions& options, const WorkControl& control) {
  const int64_t rest = data.samples() % batch, last = rest < least ? data.samples() - rest : data.samples();
  if (last == 0) return std::nullopt;
  const bool has_labels = program.inputs.size() > data.columns.size();
  const LossOptions loss = choose_loss(options);
  Measurement measurement(program, loss, options.metrics);
  for (int64_t first = 0; first < last; first += batch) {
    if (control.stopped()) return std::nullopt;
    measurement.add(take_validation_inputs(data, first, std::min(batch, last - first), program.inputs.size(),
                                           options.batches.transforms),
                    has_labels);
  }
  return measurement.result();
}

}  // namespace lissome

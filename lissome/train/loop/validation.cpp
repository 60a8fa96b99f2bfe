#include "lissome/train/loop/validation.h"

#include <ATen/core/ivalue.h>

#include <algorithm>

#include "lissome/train/step/batches.h"

namespace lissome {
namespace {

// The outputs behind the loss.
std::vector<at::Tensor> list_outputs(const std::vector<c10::IValue>& results) {
  std::vector<at::Tensor> outputs;
  for (size_t i = 1; i < results.size(); ++i) {
    if (results[i].isTensor()) outputs.push_back(results[i].toTensor());
  }
  return outputs;
}

bool compares_classes(const Program& program) {
  const auto& nodes = program.nodes;
  return std::any_of(nodes.begin(), nodes.end(), [](const Node& node) { return node.is("aten::cross_entropy_loss"); });
}

}  // namespace

std::optional<ValidationResult> validate(const Program& program, const Dataset& data, int64_t batch, int64_t least,
                                         const std::vector<TrainMetric>& metrics, const WorkControl& control) {
  const int64_t rest = data.samples() % batch, last = rest < least ? data.samples() - rest : data.samples();
  if (last == 0) return std::nullopt;
  const bool has_labels = program.inputs.size() > data.columns.size();
  std::vector<TrainMetric> measured;
  std::vector<double> sums;
  double losses = 0;
  for (int64_t first = 0; first < last; first += batch) {
    if (control.stopped()) return std::nullopt;
    const int64_t count = std::min(batch, last - first);
    const auto samples = static_cast<double>(count);
    const std::vector<at::Tensor> inputs = take_inputs(data, first, count, program.inputs.size());
    const std::vector<c10::IValue> results = interpret(program, {inputs.begin(), inputs.end()});
    losses += results.at(0).toTensor().item().toDouble() * samples;
    const std::vector<at::Tensor> outputs = list_outputs(results);
    if (!has_labels || outputs.empty()) continue;
    if (first == 0) {
      measured = choose_metrics(outputs[0], inputs.back(), compares_classes(program));
      measured.insert(measured.end(), metrics.begin(), metrics.end());
      sums.resize(measured.size());
    }
    for (size_t i = 0; i < measured.size(); ++i) sums[i] += measured[i].measure(outputs, inputs.back()) * samples;
  }
  ValidationResult result{losses / static_cast<double>(last), {}};
  for (size_t i = 0; i < measured.size(); ++i)
    result.metrics.emplace_back(measured[i].name, sums[i] / static_cast<double>(last));
  return result;
}

}  // namespace lissome

// Ranges of activations, from two runs over the calibration batches: the first finds the extremes, the second fills one
// histogram a value, from which the range is chosen. Memory is one histogram a value, whatever the number of batches.
#include <ATen/core/ivalue.h>

#include <map>

#include "lissome/compress.h"
#include "lissome/compress/range_histogram.h"

namespace lissome {
namespace {

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

}  // namespace

std::vector<ActivationRange> observe_ranges(const Program& program, const std::vector<ValueId>& values,
                                            const CalibrationBatches& batches, RangeMethod method,
                                            const WorkControl& control) {
  std::map<ValueId, size_t> wanted;
  for (size_t i = 0; i < values.size(); ++i) wanted.emplace(values[i], i);
  std::vector<RangeHistogram> histograms(values.size());
  visit_values(program, wanted, batches, control,
               [&](size_t index, const at::Tensor& tensor) { histograms[index].widen(tensor); });
  visit_values(program, wanted, batches, control,
               [&](size_t index, const at::Tensor& tensor) { histograms[index].count(tensor); });
  std::vector<ActivationRange> ranges;
  for (const RangeHistogram& histogram : histograms) ranges.push_back(histogram.choose_range(method));
  return ranges;
}

}  // namespace lissome

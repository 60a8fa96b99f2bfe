#include "lissome/tune/calibration.h"

#include <ATen/core/ivalue.h>

#include "lissome/compare.h"

namespace lissome {
namespace {

constexpr int64_t kCalibrationBatch = 16;

}  // namespace

CalibrationBatches cut_calibration(Dataset data, const BatchRange& range) {
  CalibrationBatches batches;
  const int64_t step = range.nearest(kCalibrationBatch);
  for (size_t i = 0; data.samples() % step != 0 && data.samples() % step < range.least; ++i)
    data.rows.push_back(data.rows.at(i));
  for (int64_t first = 0; first < data.samples(); first += step) {
    const std::vector<NamedArray> arrays = take_batch(data, first, std::min(step, data.samples() - first));
    std::vector<c10::IValue> values;
    // Copies, because the batch must outlive the arrays it was taken from.
    for (const c10::IValue& value : to_ivalues(arrays)) values.emplace_back(value.toTensor().clone());
    batches.push_back(std::move(values));
  }
  return batches;
}

std::vector<NamedArray> take_call(Dataset data, int64_t batch) {
  for (size_t i = 0; data.samples() < batch; ++i) data.rows.push_back(data.rows.at(i));
  return take_batch(data, 0, batch);
}

}  // namespace lissome

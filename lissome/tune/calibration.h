// Rows of data as batches that calibrate int8, and as one call.
#pragma once

#include "lissome/compress.h"
#include "lissome/data.h"

namespace lissome {

// All samples of `data`, 16 at a time or what is nearest in `range`. A last batch below the range is filled up with the
// first samples. Tensors own their elements.
CalibrationBatches cut_calibration(Dataset data, const BatchRange& range);

// The first `batch` samples, from the beginning again where there are fewer.
std::vector<NamedArray> take_call(Dataset data, int64_t batch);

}  // namespace lissome

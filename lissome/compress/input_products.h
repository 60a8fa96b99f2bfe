// How the inputs of linears move together on calibration data.
#pragma once

#include <map>
#include <vector>

#include "lissome/compress/layer.h"

namespace lissome {

// Sums of x xᵀ over rows of an input, f32 [inputs, inputs]; a way to round that is fitted to some is judged by others.
struct InputProducts {
  at::Tensor fitted, judged;

  at::Tensor all() const { return fitted.add(judged); }
};

// Of the values that these layers read, over a sample of the rows. Memory: two matrices a value.
std::map<ValueId, InputProducts> measure_products(const Program& program, const std::vector<Layer*>& layers,
                                                  const CalibrationBatches& batches, const WorkControl& control);

}  // namespace lissome

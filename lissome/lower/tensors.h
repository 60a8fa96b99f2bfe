// Between libtorch's tensors and the runtime's arrays, without copying where the memory is dense.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "lissome/base.h"
#include "lissome/runtime.h"

namespace lissome {

// Shares the tensor's memory and keeps it alive; a copy when it is not dense in row order.
Array share_tensor(const at::Tensor& tensor);
// Shares the array's memory and keeps it alive.
at::Tensor share_array(const Array& array);
// Of an f32 tensor: neither infinity nor NaN.
bool is_finite(const at::Tensor& tensor);

}  // namespace lissome

// Copies a tensor of libtorch into an array, dense and row-major.
#pragma once

#include <ATen/core/Tensor.h>

#include "lissome/base.h"

namespace lissome {

Array copy_tensor(const at::Tensor& tensor);

}  // namespace lissome

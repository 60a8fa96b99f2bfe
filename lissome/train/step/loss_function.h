// A user's own loss, written in C++ as calls of ATen's ops and recorded into the program.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "lissome/program.h"

namespace lissome {

// Computes a scalar, the mean over the batch, from the model's outputs and the labels, which are undefined if the data
// has none.
using LossFunction = std::function<at::Tensor(const std::vector<at::Tensor>& outputs, const at::Tensor& labels)>;

// Adds an input "labels" and the result of `function` as the first output, as attach_loss() does. `examples`: the
// model's inputs, then labels if there are some. Named dimensions of the outputs stay free. A branch of the function
// that depends on data is recorded as it was taken. Throws invalid_input if the result is not a scalar, and the errors
// of import_module().
Program attach_loss_function(const Program& model, const LossFunction& function,
                             const std::vector<at::Tensor>& examples);

}  // namespace lissome

// A loss of one's own, written in C++ as calls of ATen's ops and recorded into the program.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "lissome/program.h"

namespace lissome {

// A scalar, the mean over the batch, of the model's outputs and the labels; those are undefined where the data has
// none.
using LossFunction = std::function<at::Tensor(const std::vector<at::Tensor>& outputs, const at::Tensor& labels)>;

// The model with an input "labels", what `function` computes as its first output, its own outputs after it, as
// attach_loss() gives it. `examples`: the model's inputs, then labels where there are some; the named dimensions of the
// outputs stay free. What depends on data in the function (branches) is recorded as it went. Throws invalid_input when
// it gives no scalar, and what import_module() throws.
Program attach_loss_function(const Program& model, const LossFunction& function,
                             const std::vector<at::Tensor>& examples);

}  // namespace lissome

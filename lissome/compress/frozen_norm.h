// Batch norm behind a convolution or linear, with its statistics frozen: y = W x + b becomes (W t) x + (b - mean) t +
// beta with t = gamma / sqrt(variance + eps), written as nodes, so that W, b, gamma and beta still train.
#pragma once

#include <optional>

#include "lissome/compress/layer.h"

namespace lissome {

struct FrozenNorm {
  size_t position = 0;           // of the norm in Program::nodes
  Argument gamma, beta;          // none: 1 and 0
  at::Tensor inverse_deviation;  // f32 [channels], 1 / sqrt(variance + eps)
  at::Tensor mean;               // f32 [channels]
};

// The norm in eval form that alone reads what the layer gives, on its channels.
std::optional<FrozenNorm> find_frozen_norm(const Program& program, const Uses& uses, const Layer& layer);

// The layer's weight and bias as the norm scales and shifts them: new nodes of `program`.
struct ScaledWeights {
  ValueId weight = ValueId::none, bias = ValueId::none;
};
ScaledWeights add_scaled_weights(Program& program, const Node& layer, const FrozenNorm& norm, const std::string& name);

// The numbers of that weight.
at::Tensor scale_weight(const Program& program, const at::Tensor& weight, const FrozenNorm& norm);

}  // namespace lissome

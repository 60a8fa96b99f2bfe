// Nodes of the int8 ops, made in one place: for the measured layer and for the rewritten program alike.
#pragma once

#include <optional>
#include <string>

#include "lissome/compress/layer.h"

namespace lissome {

// What the layer does after its sums.
struct Epilogue {
  std::string activation;  // "none", "relu", ...
  Argument residual;       // f32, or u8 of `residual_range`; added before the activation
  std::optional<ActivationRange> residual_range = std::nullopt;
};

// quantize(value) with the range's scale and zero point: u8.
ValueId add_quantize(Program& program, ValueId value, const ActivationRange& range);

// The int8 form of `node` reading `input` (u8, or f32 when the layer is dynamic). With `result_range` the result is u8
// of that range, else f32. `type` is the float result's type.
ValueId add_int8_layer(Program& program, const Node& node, const Layer& layer, ValueId input, const Epilogue& epilogue,
                       const std::optional<ActivationRange>& result_range, ValueType type);

// The activation and residual of a fused node; "none" for a plain one.
Epilogue read_epilogue(const Node& node);

}  // namespace lissome

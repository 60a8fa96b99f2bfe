// Adds nodes of the int8 ops, for the measured layer and for the rewritten program.
#pragma once

#include <optional>
#include <string>

#include "lissome/compress/layer.h"

namespace lissome {

// The operations of a layer after its sums.
struct Epilogue {
  std::string activation;  // "none", "relu", ...
  Argument residual;       // f32, or u8 of `residual_range`; added before the activation
  std::optional<ActivationRange> residual_range = std::nullopt;
};

// Adds quantize(value) to u8 with the scale and zero point of the range.
ValueId add_quantize(Program& program, ValueId value, const ActivationRange& range);

// The range of a lissome::quantize or lissome::dequantize node with literal scale and zero point; nothing for others.
std::optional<ActivationRange> read_range(const Node& node);

// Adds the int8 form of `node`, which reads `input` (u8, or f32 if the layer is dynamic). With `result_range` the
// result is u8 of that range, else f32. `type`: the type of the float result.
ValueId add_int8_layer(Program& program, const Node& node, const Layer& layer, ValueId input, const Epilogue& epilogue,
                       const std::optional<ActivationRange>& result_range, ValueType type);

// The activation and residual of a fused node; "none" for a node without.
Epilogue read_epilogue(const Node& node);

}  // namespace lissome

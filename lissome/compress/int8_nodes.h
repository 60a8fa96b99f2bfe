// Nodes between int8 layers that have a form from u8 to u8: activations that are not fused into a layer, which become
// tables of 256 entries, and average pools.
#pragma once

#include <vector>

#include "lissome/compress.h"

namespace lissome {

// An activation of one f32 value with literal settings, or the average over windows, or over all pixels, of f32 images
// of known size.
bool is_int8_node(const Program& program, const Node& node);

// Adds the form of `node` from `x`, u8 of range `from`, to u8 of range `to`.
ValueId add_int8_node(Program& program, const Node& node, ValueId x, const ActivationRange& from,
                      const ActivationRange& to);

}  // namespace lissome

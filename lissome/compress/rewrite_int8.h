// Rewrites a whole program with the chosen layers in int8.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lissome/compress/layer.h"

namespace lissome {

// Ranges of the values that int8 nodes read (int8_nodes.h), by the name of the value.
using Int8Ranges = std::map<std::string, ActivationRange>;

// Quantizes each input once, however many layers read it, and as early as possible (above reshapes and similar nodes,
// which also work on u8). A layer returns u8 if all its readers take u8. Activations and average pools between layers
// work on u8 too if `ranges` contains the range of their input.
Program rewrite_int8(const Program& program, const std::vector<Layer>& layers, const Int8Ranges& ranges);

}  // namespace lissome

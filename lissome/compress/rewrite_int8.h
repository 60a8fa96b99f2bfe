// The whole program with its chosen layers in int8.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lissome/compress/layer.h"

namespace lissome {

// Of what byte nodes read, by the name of the value.
using ByteRanges = std::map<std::string, ActivationRange>;

// Quantizes each input once however many layers read it, as early as the order of the data allows (above
// reshapes and the like, which work on u8 just as well), and lets a layer give u8 where only such readers follow.
// Activations and average pools between layers work on u8 too, where `ranges` tells of what they read.
Program rewrite_int8(const Program& program, const std::vector<Layer>& layers, const ByteRanges& ranges);

}  // namespace lissome

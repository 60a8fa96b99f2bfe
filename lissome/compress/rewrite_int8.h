// The whole program with its chosen layers in int8.
#pragma once

#include <vector>

#include "lissome/compress/layer.h"

namespace lissome {

// Quantizes each input once however many layers read it, as early as the order of the data allows (above
// reshapes and the like, which work on u8 just as well), and lets a layer give u8 where only such readers follow.
Program rewrite_int8(const Program& program, const std::vector<Layer>& layers);

}  // namespace lissome

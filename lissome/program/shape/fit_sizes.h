// Which expression over named dimensions explains a number that was seen at several sizes. For importing modules by
// recording: C++ code computes sizes as plain integers, so they are found out by running it at other sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lissome/program/shape/dimension.h"

namespace lissome {

// One run: the sizes of the named dimensions and the number seen.
struct SizeSample {
  DimensionBindings sizes;
  int64_t number = 0;
};

// The simplest of: a constant, k*m + b, (m + b)//k + c, (b - m)//k + c, Min(k*m + b, c), that gives every sample, where
// m is a name or a product of up to three, a name twice included; fewer names go first, and in Min m is a name. Nothing
// when none does. All samples must hold the same names.
std::optional<Dimension> fit_size(const std::vector<SizeSample>& samples);

}  // namespace lissome

// Arrays whose contents are made from a number, for inputs of fuzz targets that carry no data of their own.
#pragma once

#include "lissome/base/tensor.h"

namespace lissome {

struct FilledArray {
  Dtype dtype = Dtype::f32;
  Sizes sizes;
  uint64_t fill = 0;
};

// An array without a byte behind its last, so that a read or write beyond is seen. fill % 8 says what is in it: small
// numbers that are good indices, all bits at random, zeros, numbers that are hostile as indices, infinities and NaN.
Array make_filled(const FilledArray& wanted);

}  // namespace lissome
